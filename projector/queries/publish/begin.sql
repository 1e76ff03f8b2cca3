-- One snapshot for all tables. Writing files may take long, so idle transactions have no timeout. The check interval
-- ends the query together with its client.
set idle_in_transaction_session_timeout = 0;
set client_connection_check_interval = '1s';
begin transaction isolation level repeatable read read only
