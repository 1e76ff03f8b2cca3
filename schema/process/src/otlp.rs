//! Spans as OTLP over HTTP, by the libraries that the feature `otlp` selects.

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

/// What sends spans; the rest of how (`OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER` …) it reads of the environment.
pub(crate) fn provider(program: &str) -> Result<SdkTracerProvider, ExporterBuildError> {
    // Another part of the program may have said so already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let exporter = SpanExporter::builder().with_http().build()?;
    let resource = Resource::builder().with_service_name(format!("dds-{program}")).build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

/// Listens to spans of a target.
pub(crate) fn layer<S>(provider: &SdkTracerProvider, target: &'static str) -> impl Layer<S>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
{
    let layer = OpenTelemetryLayer::new(provider.tracer("dds"));
    let layer =
        layer.with_location(false).with_threads(false).with_target(false).with_tracked_inactivity(false);
    layer.with_filter(Targets::new().with_target(target, tracing::Level::INFO))
}

/// Makes a span part of its caller's trace.
pub(crate) fn continue_from(span: &Span, headers: &HeaderMap) {
    struct Headers<'a>(&'a HeaderMap);
    impl Extractor for Headers<'_> {
        fn get(&self, name: &str) -> Option<&str> {
            self.0.get(name)?.to_str().ok()
        }

        fn keys(&self) -> Vec<&str> {
            self.0.keys().map(hyper::header::HeaderName::as_str).collect()
        }
    }
    // A trace that cannot be continued begins here.
    let _ = span.set_parent(TraceContextPropagator::new().extract(&Headers(headers)));
}

/// Names a span that is open anew.
pub(crate) fn rename(span: &Span, name: String) {
    span.context().span().update_name(name);
}
