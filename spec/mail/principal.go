package mail

import "strings"

// DefaultTenant is the tenant that exists without being configured. Its
// principals' ids bear no tenant.
const DefaultTenant = "default"

// MaxID is the greatest length of a principal's or tenant's id, in bytes before
// escaping.
const MaxID = 128

// PrincipalID returns the id part of an owner string: the escaped id, preceded
// by the escaped tenant and a '/' outside [DefaultTenant]. An empty tenant means
// the default one. Different (tenant, id) give different strings, and none holds
// a ':' or '@': no token subject can forge the owner string of another.
func PrincipalID(tenant, id string) string {
	if tenant == "" || tenant == DefaultTenant {
		return EncodeID(id)
	}
	return EncodeID(tenant) + "/" + EncodeID(id)
}

// SplitPrincipal is the inverse of [PrincipalID]; the tenant it returns is never
// empty. It takes only what PrincipalID gives for ids of 1 to [MaxID] bytes. The
// error is a *[FieldError].
func SplitPrincipal(s string) (tenant, id string, err error) {
	tenant, id, qualified := strings.Cut(s, "/")
	if !qualified {
		id, err = DecodeID(s)
		return DefaultTenant, id, err
	}
	if tenant, err = DecodeID(tenant); err != nil {
		return "", "", under("tenant", err)
	}
	if tenant == DefaultTenant {
		return "", "", faultf("tenant", "must be left out when it is %q", DefaultTenant)
	}
	id, err = DecodeID(id)
	return tenant, id, err
}

// EncodeID returns id with every byte outside [A-Za-z0-9._~-] as %XX, in upper
// case hex.
func EncodeID(id string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(id) {
		if c := id[i]; isUnreserved(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

// DecodeID is the inverse of [EncodeID]. It refuses, with a *[FieldError], any
// other spelling of an id (one id, one string) and ids that are empty or longer
// than [MaxID] bytes.
func DecodeID(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' {
			if i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
				return "", faultf("", "has a broken escape")
			}
			c = unhex(s[i+1])<<4 | unhex(s[i+2])
			i += 2
		}
		b.WriteByte(c)
	}
	id := b.String()
	switch {
	case id == "":
		return "", faultf("", "must not be empty")
	case len(id) > MaxID:
		return "", limitf("", "must have at most %d bytes", MaxID)
	case EncodeID(id) != s:
		return "", faultf("", "must be letters, digits, '.', '_', '~' and '-', all others as upper-case %%XX")
	}
	return id, nil
}

func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '.' || c == '_' || c == '~' || c == '-'
}

// unhex returns the value of a hex digit; the caller has checked that it is one.
func unhex(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}
