//! Access to feed files: search on disk and in archives, standard input, unpacking to text, and splitting into records.

pub(crate) mod csv_reader;
pub(crate) mod feed_files;
pub(crate) mod folder_handle;
pub(crate) mod parquet_table;
pub(crate) mod standard_input;
pub(crate) mod unpack;
pub(crate) mod zip_archive;
