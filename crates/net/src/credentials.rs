//! Certificates that identify servers to parties, and keys that identify parties to servers.
//!
//! Nothing here shows a secret in its `Debug` output.

use nkeys::KeyPair;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyUsagePurpose, PublicKeyData,
};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The authority's certificate in its folder: every party gets a copy.
pub const AUTHORITY_CERTIFICATE: &str = "authority.pem";

/// The authority's key in its folder: it stays there.
pub const AUTHORITY_KEY: &str = "authority-key.pem";

/// The authority's name in its folder, since its certificate is never parsed.
const AUTHORITY_NAME: &str = "authority-name.txt";

/// Why keys or certificates could not be made, written or read.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A certificate could not be made, or a key is not one.
    #[error("certificate of {subject}: {source}")]
    Certificate {
        /// Whose certificate.
        subject: String,
        /// What the library said.
        source: rcgen::Error,
    },
    /// A server without a name cannot be verified.
    #[error("a server's certificate needs at least one host name or address")]
    NoHosts,
    /// A seed is not that of a user.
    #[error("not the seed of a NATS user key: {0}")]
    Seed(String),
}

/// Random bytes, suitable for secrets.
///
/// # Errors
/// If the system has none.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// Writes a text that only its owner may read: mode 0600, also if the file existed with another mode.
pub fn write_secret(path: &Path, text: &str) -> Result<(), CredentialError> {
    let write = || {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().map_err(|source| CredentialError::File {
        path: path.to_owned(),
        source,
    })
}

fn read(path: &Path) -> Result<String, CredentialError> {
    fs::read_to_string(path).map_err(|source| CredentialError::File {
        path: path.to_owned(),
        source,
    })
}

/// The deployment's own certificate authority: parties trust it and nobody else.
///
/// Its certificates do not expire; a deployment ends by throwing its authority away.
pub struct Authority {
    name: String,
    certificate: String,
    key: rcgen::KeyPair,
}

/// A server's certificate and its key, as PEM.
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// The key, a secret.
    pub key: String,
    /// The fingerprint of the public key: SHA-256 in hexadecimal digits.
    pub fingerprint: String,
}

impl Authority {
    /// Makes an authority with a new key.
    pub fn new(name: &str) -> Result<Self, CredentialError> {
        let make = || {
            let key = rcgen::KeyPair::generate()?;
            let certificate = authority_params(name).self_signed(&key)?.pem();
            Ok((key, certificate))
        };
        let (key, certificate) = make().map_err(|source| certificate_error(name, source))?;
        Ok(Self {
            name: name.to_owned(),
            certificate,
            key,
        })
    }

    /// Writes the authority into a folder; its key is a secret.
    pub fn save(&self, dir: &Path) -> Result<(), CredentialError> {
        for (file, text) in [
            (AUTHORITY_CERTIFICATE, &self.certificate),
            (AUTHORITY_NAME, &self.name),
        ] {
            let path = dir.join(file);
            fs::write(&path, text).map_err(|source| CredentialError::File { path, source })?;
        }
        write_secret(&dir.join(AUTHORITY_KEY), &self.key.serialize_pem())
    }

    /// Reads an authority that was saved.
    pub fn load(dir: &Path) -> Result<Self, CredentialError> {
        let name = read(&dir.join(AUTHORITY_NAME))?;
        let certificate = read(&dir.join(AUTHORITY_CERTIFICATE))?;
        let key = rcgen::KeyPair::from_pem(&read(&dir.join(AUTHORITY_KEY))?)
            .map_err(|source| certificate_error(&name, source))?;
        Ok(Self {
            name,
            certificate,
            key,
        })
    }

    /// The authority's certificate, as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Makes a key and a certificate for a server that is reached by these host names and addresses.
    pub fn issue_server(&self, hosts: &[String]) -> Result<Issued, CredentialError> {
        let first = hosts.first().ok_or(CredentialError::NoHosts)?;
        let make = || {
            let key = rcgen::KeyPair::generate()?;
            let mut params = CertificateParams::new(hosts)?;
            params.distinguished_name = named(first);
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            // Servers of a cluster connect to each other, and are clients then.
            params.extended_key_usages = vec![
                ExtendedKeyUsagePurpose::ServerAuth,
                ExtendedKeyUsagePurpose::ClientAuth,
            ];
            params.use_authority_key_identifier_extension = true;
            let issuer = Issuer::new(authority_params(&self.name), &self.key);
            let certificate = params.signed_by(&key, &issuer)?.pem();
            Ok(Issued {
                certificate,
                key: key.serialize_pem(),
                fingerprint: Sha256::digest(key.subject_public_key_info())
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect(),
            })
        };
        make().map_err(|source| certificate_error(first, source))
    }
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn certificate_error(subject: &str, source: rcgen::Error) -> CredentialError {
    CredentialError::Certificate {
        subject: subject.to_owned(),
        source,
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issued")
            .field("certificate", &self.certificate)
            .finish_non_exhaustive()
    }
}

/// A party's key: a server holds the public half and lets in whoever can sign with the other.
#[derive(Clone)]
pub struct Identity {
    /// The public half, which begins with `U`.
    pub public: String,
    /// The secret half, which begins with `SU`.
    pub seed: String,
}

impl Identity {
    /// Makes a new key.
    pub fn generate() -> Result<Self, CredentialError> {
        Self::of(&KeyPair::new_user())
    }

    /// The key of a stored seed; surrounding white space is ignored.
    pub fn from_seed(seed: &str) -> Result<Self, CredentialError> {
        let pair =
            KeyPair::from_seed(seed.trim()).map_err(|e| CredentialError::Seed(e.to_string()))?;
        Self::of(&pair)
    }

    fn of(pair: &KeyPair) -> Result<Self, CredentialError> {
        let public = pair.public_key();
        if !public.starts_with('U') {
            return Err(CredentialError::Seed(format!("it belongs to {public}")));
        }
        let seed = pair
            .seed()
            .map_err(|e| CredentialError::Seed(e.to_string()))?;
        Ok(Self { public, seed })
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("public", &self.public)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let identity = Identity::generate().unwrap();
        assert!(!format!("{identity:?}").contains(&identity.seed));
        let authority = Authority::new("test").unwrap();
        let issued = authority.issue_server(&["127.0.0.1".to_owned()]).unwrap();
        assert!(!format!("{authority:?} {issued:?}").contains("PRIVATE"));
        assert!(issued.key.contains("PRIVATE"));
    }

    #[test]
    fn a_seed_gives_its_key_again() {
        let identity = Identity::generate().unwrap();
        let again = Identity::from_seed(&format!("{}\n", identity.seed)).unwrap();
        assert_eq!(again.public, identity.public);
        assert!(Identity::from_seed("SUnonsense").is_err());
        let account = KeyPair::new_account().seed().unwrap();
        assert!(
            Identity::from_seed(&account).is_err(),
            "an account's seed is not a user's"
        );
    }

    #[test]
    fn a_secret_is_for_its_owner_only() {
        let path = std::env::temp_dir().join(format!("selvedge-secret-{}", std::process::id()));
        fs::write(&path, "something longer than that").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        write_secret(&path, "secret").unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "secret");
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_server_without_hosts_gets_no_certificate() {
        let authority = Authority::new("test").unwrap();
        assert!(matches!(
            authority.issue_server(&[]),
            Err(CredentialError::NoHosts)
        ));
    }
}
