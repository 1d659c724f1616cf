package config

import (
	"errors"
	"fmt"
	"os"

	"skep/host/internal/listen"
)

// TLS is the [server.tls] table, its paths absolute or relative to the process;
// Cert is empty without one.
type TLS struct {
	listen.Files
	RequireClient bool // callers must show a certificate of ClientCA
	TLS12         bool // callers without TLS 1.3 are let in
}

func (d *decoder) tls(t *table) TLS {
	files, whole, cert := [3]string{}, t.values != nil, t.spot
	for i, key := range []string{"cert", "key", "client_ca"} {
		v, ok := t.value(key)
		if !ok {
			if needed := key != "client_ca"; needed && t.values != nil && !t.has(key) {
				t.missing(key, "")
			}
			whole = whole && key == "client_ca" && !t.has(key)
			continue
		}
		files[i] = d.path(v.text)
		d.names(files[i], key == "key")
		if key == "cert" {
			cert = v.spot
		}
		if err := isFile(files[i]); err != nil {
			whole = false
			d.atValue(v.spot, fmt.Sprintf("the file %s %s", v.shown, err))
		}
	}
	s := TLS{Files: listen.Files{Cert: files[0], Key: files[1], ClientCA: files[2]}}
	if whole {
		d.checkCertificate(t, cert, s.Files)
		d.checkKeyFile(t, s.Key)
	}
	s.TLS12 = t.oneOf("min_version", "1.3", "1.3", "1.2") == "1.2"
	s.RequireClient = t.oneOf("client_auth", "request", "request", "require") == "require"
	if t.has("client_auth") && !t.has("client_ca") {
		d.atKey(t.child("client_auth"), t.path+".client_auth needs client_ca, which says whose certificates callers show")
	}
	t.done()
	return s
}

// checkCertificate makes sure that a host could show it.
func (d *decoder) checkCertificate(t *table, cert spot, files listen.Files) {
	err := files.Check(d.opt.Now)
	var period *listen.PeriodError
	switch {
	case errors.As(err, &period):
		d.atValue(cert, fmt.Sprintf("%s.cert: %s", t.path, err))
	case err != nil:
		d.atKey(t.spot, fmt.Sprintf("%s: %s", t.path, err))
	}
}

// checkKeyFile warns of a key that everybody on the machine can read. One that a
// group can read is how certificates are shared with services.
func (d *decoder) checkKeyFile(t *table, key string) {
	info, err := os.Stat(key)
	if err == nil && info.Mode().Perm()&0o004 != 0 {
		d.warn(t.child("key"), fmt.Sprintf("everybody on this machine can read the key %s; chmod 600 %s", key, key))
	}
}
