//! Parameter set of an endpoint: the trait that the parameters of every endpoint implement.

use super::ParameterReader;
use crate::auth::tier::Tier;

/// Parameter set of one endpoint.
pub(crate) trait Parameters: Sized + Send + Sync + 'static {
    /// Feature name that a 403 shows. It is empty if every tier has access.
    const FEATURE: &'static str = "";
    /// True if the response differs by tier. The response cache then has a separate entry for each tier.
    const TIER_MATTERS: bool = false;
    /// True if every response is expensive. Otherwise, only responses with many rows or earlier data are expensive.
    const IS_COSTLY: bool = false;
    /// False for requests that match no endpoint. Such a request does not count against the quota, and its parameters
    /// are not checked.
    const ROUTED: bool = true;
    /// Descriptions for the OpenAPI document, as pairs of field name and description. A description belongs to the
    /// parameter with the name of the field. A parameter without a description here, such as `cursor`, gets one from
    /// [`ParameterReader`].
    const DESCRIPTIONS: &'static [(&'static str, &'static str)] = &[];

    /// Reads all accepted parameters. The reader collects the errors.
    fn read(reader: &mut ParameterReader<'_>) -> Self;

    /// Minimum tier that these parameter values need, and the feature name that a 403 shows. `None` if they need no
    /// higher tier than the endpoint itself.
    fn needs(&self) -> Option<(Tier, &'static str)> {
        None
    }
}

/// Declares the parameter struct of an endpoint, and implements [`Parameters`]. Each field has a type and an expression
/// that reads its value. Field docs become OpenAPI descriptions.
macro_rules! parameters {
    ($(#[doc = $about:literal])+ pub(crate) struct $name:ident $(<const $constant:ident: $of:ty>)? by $reader:ident {
        $($(#[doc = $description:literal])* $field:ident: $type:ty = $value:expr,)+
    } $($item:tt)*) => {
        $(#[doc = $about])+
        #[derive(Debug)]
        pub(crate) struct $name $(<const $constant: $of>)? {
            $($(#[doc = $description])* $field: $type,)+
        }

        impl $(<const $constant: $of>)? $crate::parameters::Parameters for $name $(<$constant>)? {
            const DESCRIPTIONS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($field), concat!($($description, "\n"),*))),+];
            $($item)*

            fn read($reader: &mut $crate::parameters::ParameterReader<'_>) -> Self {
                $(let $field = $value;)+
                Self { $($field),+ }
            }
        }
    };
}

pub(crate) use parameters;

/// Empty parameter set of a request that matches no endpoint.
#[derive(Debug)]
pub(crate) struct UnroutedParameters;

impl Parameters for UnroutedParameters {
    const ROUTED: bool = false;

    fn read(_: &mut ParameterReader<'_>) -> Self {
        Self
    }
}
