package config

import (
	"fmt"
	"time"

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
	files, whole := [3]string{}, t.values != nil
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
		if err := isFile(files[i]); err != nil {
			whole = false
			d.atValue(v.spot, fmt.Sprintf("the file %s %s", v.shown, err))
		}
	}
	s := TLS{Files: listen.Files{Cert: files[0], Key: files[1], ClientCA: files[2]}}
	// When it ends is looked at by the host: a file does not become wrong by itself.
	if err := s.Check(time.Time{}); whole && err != nil {
		d.atKey(t.spot, fmt.Sprintf("%s: %s", t.path, err))
	}
	s.TLS12 = t.oneOf("min_version", "1.3", "1.3", "1.2") == "1.2"
	s.RequireClient = t.oneOf("client_auth", "request", "request", "require") == "require"
	if t.has("client_auth") && !t.has("client_ca") {
		d.atKey(t.child("client_auth"), t.path+".client_auth needs client_ca, which says whose certificates callers show")
	}
	t.done()
	return s
}
