//! OpenLDAP's slapd.

use crate::process::{Process, free_port, program, run};
use crate::restart::{Freezable, Restartable};
use crate::server::Tls;
use thrum_conformance::folder::Folder;

/// The account that may look users up.
pub const READER: &str = "cn=reader,dc=example,dc=org";
/// Its password.
pub const PASSWORD: &str = "reader's p:@ss";

/// A server with the directory `dc=example,dc=org`. Only the reader may read it.
#[derive(Debug)]
pub struct OpenLdap {
    process: Option<Process>,
    port: u16,
    tls_port: u16,
    folder: Folder,
}

impl OpenLdap {
    /// Makes a directory with these entries below its root and starts the server.
    ///
    /// # Panics
    /// It is not installed, or does not start.
    pub fn start(entries: &str, tls: Option<&Tls>) -> Self {
        let folder = Folder::new("slapd");
        std::fs::create_dir(folder.path().join("data")).expect("a folder");
        crate::process::give_to_user(&folder.path().join("data"));
        let tls = tls.map_or_else(String::new, |tls| {
            let certificate = folder.write("server.crt", &tls.certificate);
            let key = folder.write("server.key", &tls.key);
            format!(
                "TLSCertificateFile {}\nTLSCertificateKeyFile {}\n",
                certificate.display(),
                key.display()
            )
        });
        let settings = CONFIG
            .replace("FOLDER/", &folder.file(""))
            .replace("TLS\n", &tls);
        let settings = folder.write("slapd.conf", &settings).display().to_string();
        let root = format!(
            "dn: dc=example,dc=org\nobjectClass: dcObject\nobjectClass: organization\ndc: example\no: Example\n\n\
             dn: {READER}\nobjectClass: organizationalRole\nobjectClass: simpleSecurityObject\ncn: reader\n\
             userPassword: {PASSWORD}\n\n{entries}"
        );
        let entries = folder.write("entries.ldif", &root).display().to_string();
        run(&[
            &program(&["/usr/sbin/slapadd"]),
            "-q",
            "-f",
            &settings,
            "-l",
            &entries,
        ]);
        let mut server = Self {
            process: None,
            port: free_port(),
            tls_port: free_port(),
            folder,
        };
        server.restart();
        server
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("ldap://127.0.0.1:{}", self.port)
    }

    /// Its URL for TLS.
    pub fn tls_url(&self) -> String {
        format!("ldaps://localhost:{}", self.tls_port)
    }

    /// Its folder.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }
}

impl Restartable for OpenLdap {
    fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }

    fn restart(&mut self) {
        let urls = format!("{} ldaps://127.0.0.1:{}", self.url(), self.tls_port);
        let settings = self.folder.file("slapd.conf");
        let server = ["/usr/sbin/slapd", "-d", "0", "-h", &urls, "-f", &settings];
        let process = Process::start(&server, &self.folder.path().join("log"));
        process.wait_for_port(self.port);
        self.process = Some(process);
    }
}

impl Freezable for OpenLdap {
    fn freeze(&mut self) {
        self.process.iter().for_each(Process::freeze);
    }

    fn thaw(&mut self) {
        self.process.iter().for_each(Process::thaw);
    }
}

const CONFIG: &str = "\
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
attributetype ( 1.3.6.1.4.1.32473.1.1 NAME 'isSuperuser' EQUALITY booleanMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.7 SINGLE-VALUE )
attributetype ( 1.3.6.1.4.1.32473.1.2 NAME 'mqttPublishTopic' EQUALITY caseExactMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )
attributetype ( 1.3.6.1.4.1.32473.1.3 NAME 'mqttSubscriptionTopic' EQUALITY caseExactMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )
attributetype ( 1.3.6.1.4.1.32473.1.4 NAME 'mqttPubSubTopic' EQUALITY caseExactMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )
objectclass ( 1.3.6.1.4.1.32473.2.1 NAME 'mqttUser' SUP top AUXILIARY MAY ( isSuperuser $ mqttPublishTopic $ mqttSubscriptionTopic $ mqttPubSubTopic ) )
modulepath /usr/lib/ldap
moduleload back_mdb
allow bind_anon_cred
pidfile FOLDER/pid
argsfile FOLDER/args
TLS
database mdb
maxsize 33554432
dbnosync
suffix \"dc=example,dc=org\"
directory FOLDER/data
access to attrs=userPassword by dn.exact=\"cn=reader,dc=example,dc=org\" read by anonymous auth by * none
access to * by dn.exact=\"cn=reader,dc=example,dc=org\" read by * none
";
