//! Test that loads a Parquet file.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Parser;
use event_log::stream::StreamSettings;
use ingest::load::{LoadArgs, load};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use telemetry::Shutdown;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    stream: StreamSettings,
    #[command(flatten)]
    load: LoadArgs,
}

const SCHEMA: &str = "message prices {
    required binary symbol (UTF8);
    required int64 date (TIMESTAMP(NANOS, false));
    required int64 close (DECIMAL(16, 4));
    required double open;
    required int64 volume;
}";

fn write<T: DataType>(group: &mut SerializedRowGroupWriter<'_, File>, values: &[T::T]) -> Result<()> {
    let mut column = group.next_column()?.context("a column")?;
    column.typed::<T>().write_batch(values, None, None)?;
    Ok(column.close()?)
}

fn prices(path: &Path) -> Result<()> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut writer = SerializedFileWriter::new(File::create(path)?, schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    write::<ByteArrayType>(&mut group, &["KO", "KO"].map(ByteArray::from))?;
    write::<Int64Type>(&mut group, &[1_710_374_400_000_000_000, 1_710_460_800_000_000_000])?;
    write::<Int64Type>(&mut group, &[600_001, 9_007_199_254_740_993])?;
    write::<DoubleType>(&mut group, &[60.1, 0.1 + 0.2])?;
    write::<Int64Type>(&mut group, &[100, -1])?;
    group.close()?;
    writer.close()?;
    Ok(())
}

#[tokio::test]
async fn decimals_are_exact_and_doubles_are_their_shortest() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("ingest-parquet-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("prices.parquet");
    prices(&path)?;
    let path = path.display().to_string();
    let load_it = ["load", &path, "--source", "sample", "--dry-run", "--today", "2024-03-15"];
    let cli = Cli::parse_from(load_it.into_iter().chain(["--max-reject-percent", "60"]));
    let summary = load(&cli.load, &cli.stream, &Shutdown::listen()?).await?;
    std::fs::remove_dir_all(folder)?;
    // The report shows the rejected row with the numbers that were read from the Parquet file.
    let refused: Vec<&str> = summary.examples.iter().map(|reject| reject.row.as_str()).collect();
    assert_eq!(refused, ["KO,2024-03-15,900719925474.0993,0.30000000000000004,-1"], "{}", summary.report());
    assert_eq!((summary.rows_total, summary.files.reports[0].doubles.join(" ")), (1, "open".to_owned()));
    assert!(summary.report().to_string().contains("binary doubles, read as their shortest decimals: open"));
    Ok(())
}
