package config

import (
	"errors"
	"fmt"
	"os"

	"skep/host/internal/api/listener"
	"skep/host/internal/pathcheck"
)

// TLS is the [server.tls] table, its paths absolute or relative to the process;
// Cert is empty without one.
type TLS struct {
	listener.Files
	RequireClient bool // callers must show a certificate of ClientCA
	TLS12         bool // callers without TLS 1.3 are let in
}

func (s *TLS) Settings() []Setting {
	return []Setting{
		field(&s.Cert, "cert", "path", (*table).usedFile, "The certificate with its chain, in PEM.").needed(""),
		field(&s.Key, "key", "path", (*table).usedFile, "Its private key, in PEM.").needed(""),
		field(&s.ClientCA, "client_ca", "path", (*table).usedFile, "Authorities of callers' certificates, in PEM."),
		readElsewhere(&s.TLS12, "min_version", "string", "The oldest version of TLS for callers: `\"1.3\"` or `\"1.2\"`.").withDefaultText("1.3"),
		readElsewhere(&s.RequireClient, "client_auth", "string", "Callers may (`request`) or must (`require`) show a certificate of `client_ca`.").withDefaultText("request"),
	}
}

// tls reads what the settings leave to it.
func (d *decoder) tls(t *table, s *TLS) {
	if s.Cert != "" && s.Key != "" && (s.ClientCA != "" || !t.has("client_ca")) {
		d.checkCertificate(t, t.child("cert"), s.Files)
		d.checkKeyFile(t.child("key"), s.Key)
	}
	s.TLS12 = t.oneOf("min_version", "1.3", "1.3", "1.2") == "1.2"
	s.RequireClient = t.oneOf("client_auth", "request", "request", "require") == "require"
	if t.has("client_auth") && !t.has("client_ca") {
		d.atKey(t.child("client_auth"), t.path+".client_auth needs client_ca, which says whose certificates callers show")
	}
}

// usedFile reads the path of a file that has to be there.
func (t *table) usedFile(key string) string {
	v, ok := t.value(key)
	if !ok {
		return ""
	}
	path := t.d.path(v.text)
	t.d.refer(path, key == "key" || key == "client_key")
	if err := isFile(path); err != nil {
		t.d.atValue(v.location, fmt.Sprintf("the file %s %s", v.shown, err))
		return ""
	}
	return path
}

// checkCertificate makes sure that a host could show it.
func (d *decoder) checkCertificate(t *table, cert location, files listener.Files) {
	err := files.Check(d.opt.Now)
	var period *listener.PeriodError
	switch {
	case errors.As(err, &period):
		d.atValue(cert, fmt.Sprintf("%s.cert: %s", t.path, err))
	case err != nil:
		d.atKey(t.location, fmt.Sprintf("%s: %s", t.path, err))
	}
}

// checkKeyFile warns of a key that everybody on the machine can read. One that a
// group can read is how certificates are shared with services.
func (d *decoder) checkKeyFile(at location, key string) {
	info, err := os.Stat(key)
	if err == nil && pathcheck.Grants(info.Mode(), 0o004) {
		d.warn(at, fmt.Sprintf("everybody on this machine can read the key %s; chmod 600 %s", key, key))
	}
}
