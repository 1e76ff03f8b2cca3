//! Spans: one a request, one a batch. A build with the feature `otlp` sends them to the collector that
//! `OTEL_EXPORTER_OTLP_ENDPOINT` names, as OTLP over HTTP.
//!
//! Invariant: only the exporter listens to spans, so where there is none they cost a comparison. What a queue has no room for
//! is dropped, and a collector that is away delays nobody.

use hyper::HeaderMap;
use tracing::Span;

/// The target of every span, which keeps them out of the log.
pub const SPANS: &str = "span";

/// Makes a span part of the trace that a caller's `traceparent` names (W3C Trace Context).
pub fn continue_from(span: &Span, headers: &HeaderMap) {
    #[cfg(feature = "otlp")]
    if !span.is_disabled() {
        otlp::continue_from(span, headers);
    }
    #[cfg(not(feature = "otlp"))]
    let _ = (span, headers);
}

#[cfg(feature = "otlp")]
pub(crate) mod otlp {
    use opentelemetry::propagation::{Extractor, TextMapPropagator};
    use opentelemetry::trace::TracerProvider;
    use opentelemetry_otlp::{ExporterBuildError, SpanExporter};
    use opentelemetry_sdk::Resource;
    use opentelemetry_sdk::propagation::TraceContextPropagator;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tracing_opentelemetry::{OpenTelemetryLayer, OpenTelemetrySpanExt};
    use tracing_subscriber::Layer;
    use tracing_subscriber::filter::Targets;
    use tracing_subscriber::registry::LookupSpan;

    use super::{HeaderMap, SPANS, Span};

    /// What sends spans; the rest of how (`OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER` …) it reads of the environment.
    pub(crate) fn provider(program: &str) -> Result<SdkTracerProvider, ExporterBuildError> {
        // Another part of the program may have said so already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let exporter = SpanExporter::builder().with_http().build()?;
        let resource = Resource::builder().with_service_name(format!("dds-{program}")).build();
        Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
    }

    pub(crate) fn layer<S>(provider: &SdkTracerProvider) -> impl Layer<S>
    where
        S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    {
        let layer = OpenTelemetryLayer::new(provider.tracer("dds"));
        let layer =
            layer.with_location(false).with_threads(false).with_target(false).with_tracked_inactivity(false);
        layer.with_filter(Targets::new().with_target(SPANS, tracing::Level::INFO))
    }

    pub(super) fn continue_from(span: &Span, headers: &HeaderMap) {
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
}
