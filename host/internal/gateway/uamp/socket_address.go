package uamp

import (
	"net/url"
	"strings"

	"skep/host/internal/gateway"
)

// streamNamed is a stream of the partner, as it is kept: where the partner is, and the stream's id.
func (b *socketBinding) streamNamed(stream string) string {
	return b.key.url + "#" + url.PathEscape(stream)
}

// streamAt resolves an address, also one that requests of HTTP have kept, at the path of streams:
// the stream has the same name here (U-056).
func (b *socketBinding) streamAt(address string) (string, error) {
	base, err := url.Parse(b.key.url)
	if err != nil {
		return "", err
	}
	at, err := gateway.ResolveLocation(base, address)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(at)
	switch {
	case err == nil && u.Fragment != "":
		return at, nil
	case err == nil && strings.HasPrefix(u.Path, streamPath) && u.RawQuery == "":
		return b.streamNamed(strings.TrimPrefix(u.Path, streamPath)), nil
	}
	return "", gateway.Refuse("%.200q is no stream of a WebSocket", address)
}

// streamIn is the stream's id in an address, empty for none.
func streamIn(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Fragment
}
