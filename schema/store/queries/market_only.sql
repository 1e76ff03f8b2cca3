-- Restriction of a database whose accounts are in another database.
revoke usage on schema accounts from dds_api, dds_dashboard;
