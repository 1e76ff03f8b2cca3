-- Long idle timeout: one connection may wait for the other.
set idle_in_transaction_session_timeout = '10min';
begin transaction isolation level repeatable read, read only
