//! The CA certificates that deliveries trust: the system's, and a configured file.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Reads the trusted certificates. This happens at each delivery: deliveries are
/// rare, certificates change, and a server may run for months.
pub(crate) fn client_config(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(file) = ca_file {
        let bad = |what: &str| format!("{}: {what}", file.display());
        let more = CertificateDer::pem_file_iter(file).map_err(|error| bad(&error.to_string()))?;
        let more = more.collect::<Result<Vec<_>, _>>();
        let more = more.map_err(|error| bad(&error.to_string()))?;
        if roots.add_parsable_certificates(more).0 == 0 {
            return Err(bad("it contains no certificate"));
        }
    }
    if roots.is_empty() {
        return Err(
            "this machine has no CA certificates: install its package of them, or set \
                    `notify.ca_file`"
                .into(),
        );
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
