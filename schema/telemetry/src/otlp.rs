//! OTLP exporter of spans over HTTP (feature `otlp`).

use hyper::HeaderMap;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{TraceContextExt, TracerProvider};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Span;
use tracing_opentelemetry::{OpenTelemetryLayer, OpenTelemetrySpanExt};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

/// Tracer provider that exports spans in batches. The OpenTelemetry library reads all settings except the service name
/// from environment variables, for example `OTEL_EXPORTER_OTLP_HEADERS` and `OTEL_TRACES_SAMPLER`.
pub(crate) fn new_provider(program: &str) -> Result<SdkTracerProvider, ExporterBuildError> {
    // This call fails if a rustls provider is already installed. The installed provider is then used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let exporter = SpanExporter::builder().with_http().build()?;
    let resource = Resource::builder().with_service_name(format!("dds-{program}")).build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

/// Subscriber layer that exports only the spans with a given tracing target.
pub(crate) fn span_layer<S>(provider: &SdkTracerProvider, target: &'static str) -> impl Layer<S>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
{
    let layer = OpenTelemetryLayer::new(provider.tracer("dds"));
    let layer =
        layer.with_location(false).with_threads(false).with_target(false).with_tracked_inactivity(false);
    layer.with_filter(Targets::new().with_target(target, tracing::Level::INFO))
}

pub(crate) fn set_parent_from_headers(span: &Span, headers: &HeaderMap) {
    struct Headers<'a>(&'a HeaderMap);
    impl Extractor for Headers<'_> {
        fn get(&self, name: &str) -> Option<&str> {
            self.0.get(name)?.to_str().ok()
        }

        fn keys(&self) -> Vec<&str> {
            self.0.keys().map(hyper::header::HeaderName::as_str).collect()
        }
    }
    // If the headers have no valid parent, the span starts a new trace.
    let _ = span.set_parent(TraceContextPropagator::new().extract(&Headers(headers)));
}

pub(crate) fn rename_span(span: &Span, name: String) {
    span.context().span().update_name(name);
}
