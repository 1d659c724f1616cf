package egress

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"skep/abi"
)

// maxRequestHeader bounds the headers of a request, names and values, in bytes.
const maxRequestHeader = 32 << 10

const (
	keyHeader = "Idempotency-Key"
	userAgent = "skep"
)

// requestHeader checks the headers of a guest. Authorization and Cookie are allowed: a
// guest may hold credentials of its own, and the host keeps no cookie jar.
func requestHeader(given map[string]string) (http.Header, *abi.Error) {
	out, size := http.Header{}, 0
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name]
		if err := checkHeaderName(name); err != nil {
			return nil, fault(abi.CodeInvalid, ReasonHeader, "%v", err)
		}
		if !isHeaderValue(value) {
			return nil, fault(abi.CodeInvalid, ReasonHeader, "the value of the header %s has a line break or a control character", truncate(name))
		}
		key := http.CanonicalHeaderKey(name)
		if out[key] != nil {
			return nil, fault(abi.CodeInvalid, ReasonHeader, "the header %s is given twice; join its values with a comma", truncate(key))
		}
		out[key] = []string{value}
		size += len(name) + len(value)
	}
	if size > maxRequestHeader {
		return nil, fault(abi.CodeLimit, ReasonSent, "the headers have %d bytes, at most %d", size, maxRequestHeader)
	}
	return out, nil
}

// checkHeaderName refuses invalid names, headers that the host sets, and headers that ask
// a server for another method or path than the granted one.
func checkHeaderName(name string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 || !isToken(byte(r)) }) {
		return fmt.Errorf("%q is not the name of a header", truncate(name))
	}
	plain := plainName(name)
	for _, prefix := range []string{"proxy-", "x-forwarded-"} {
		if strings.HasPrefix(plain, prefix) {
			return fmt.Errorf("the header %s belongs to proxies; leave it out", truncate(name))
		}
	}
	if slices.Contains(hostHeaders(), plain) {
		return fmt.Errorf("the header %s is set by the host; leave it out", name)
	}
	if slices.Contains(overrideHeaders(), plain) {
		return fmt.Errorf("the header %s asks for another method or path than the granted; leave it out", name)
	}
	return nil
}

// hostHeaders frame the message or belong to the connection. Accept-Encoding is included
// because a coded body could hide a repeated secret.
func hostHeaders() []string {
	return []string{
		"host", "connection", "keep-alive", "te", "trailer", "transfer-encoding", "content-length", "upgrade",
		"http2-settings", "expect", "accept-encoding", "forwarded", "via", "x-real-ip",
	}
}

func overrideHeaders() []string {
	return []string{"x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url"}
}

// checkHostHeaders refuses the headers that the host adds to this request.
func checkHostHeaders(header http.Header, secrets []Secret, key bool) error {
	for name := range header {
		if key && plainName(name) == plainName(keyHeader) {
			return errors.New("the header " + keyHeader + " is set by the host; leave it out")
		}
		for _, s := range secrets {
			if plainName(name) == plainName(s.header) {
				return fmt.Errorf("the header %s is added by the host from secrets.%s; leave it out", name, s.name)
			}
		}
	}
	return nil
}

// plainName is the header name as CGI-like servers see it: they turn a hyphen into an
// underscore (RFC 3875, section 4.1.18).
func plainName(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "-")) }

func isToken(c byte) bool { return isAlnum(c) || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0 }

// isHeaderValue reports whether a value contains no line break and no control character.
func isHeaderValue(value string) bool {
	for _, c := range []byte(value) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// responseHeader converts the header of a response for the guest.
func responseHeader(header http.Header, s *Scrubber) map[string]string {
	out := map[string]string{}
	for name, values := range header {
		name = strings.ToLower(name)
		if s.holds(name) {
			continue
		}
		separator := ", "
		if name == "set-cookie" {
			separator = "\n"
		}
		out[name] = strings.ToValidUTF8(s.Text(strings.Join(values, separator)), "\uFFFD")
	}
	return out
}
