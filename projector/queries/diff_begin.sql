-- Between two statements of one side the other side may be at work for long.
set idle_in_transaction_session_timeout = '10min';
begin transaction isolation level repeatable read, read only
