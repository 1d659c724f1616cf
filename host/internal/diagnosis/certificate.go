package diagnosis

import (
	"crypto/tls"
	"time"
)

// endsSoon is how long before its end a certificate is reported, or the last third of the
// life of a short one, as a host that runs does.
const endsSoon = 14 * 24 * time.Hour

// checkCertificates looks at the certificates that the host shows.
func (d *diagnosis) checkCertificates() {
	if files := d.Config.Server.TLS; files.Cert != "" {
		if cert, err := tls.LoadX509KeyPair(files.Cert, files.Key); err == nil { // else the file has a fault
			d.checkPeriod("[server.tls] "+files.Cert, cert)
		}
	}
	for _, p := range d.Config.Peers {
		d.checkPeriods("[peers."+p.Name+"]", p.TLS)
	}
	for _, g := range d.Config.Gateways {
		for _, p := range g.Partners {
			d.checkPeriods("[gateways."+g.Name+".partners."+p.Name+"]", p.TLS)
		}
	}
}

func (d *diagnosis) checkPeriods(subject string, c *tls.Config) {
	if c == nil {
		return
	}
	for _, cert := range c.Certificates {
		d.checkPeriod(subject, cert)
	}
}

func (d *diagnosis) checkPeriod(subject string, cert tls.Certificate) {
	if cert.Leaf == nil {
		return
	}
	begins, ends, now := cert.Leaf.NotBefore, cert.Leaf.NotAfter, d.Machine.Now()
	const fix = "put a new certificate and its key into the files; a host that runs takes them over by itself"
	switch {
	case now.Before(begins):
		d.add(CertificateExpired, Error, subject, fix, "the certificate is not valid before %s", begins.UTC().Format(time.DateTime))
	case now.After(ends):
		d.add(CertificateExpired, Error, subject, fix, "the certificate expired on %s", ends.UTC().Format(time.DateTime))
	case ends.Sub(now) < min(endsSoon, ends.Sub(begins)/3):
		d.add(CertificateEnds, Warning, subject, fix, "the certificate ends on %s", ends.UTC().Format(time.DateTime))
	}
}
