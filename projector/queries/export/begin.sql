-- One snapshot for everything that is written; it may wait for files, and ends with its program.
set idle_in_transaction_session_timeout = 0;
set client_connection_check_interval = '1s';
begin transaction isolation level repeatable read read only
