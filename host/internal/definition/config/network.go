package config

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"skep/host/internal/turn/egress"
	"slices"
	"strconv"
	"strings"
)

// hostName allows the underscore, which DNS does not but container networks do.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?$`)

func isHost(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || len(host) <= 253 && hostName.MatchString(host)
}

// address reads a listener's HOST:PORT.
func (t *table) address(key, def string) string {
	v, ok := t.value(key)
	if !ok {
		return def
	}
	host, port, err := net.SplitHostPort(v.text)
	n, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || portErr != nil || host != "" && !isHost(host) {
		f := t.d.atValue(v.location, fmt.Sprintf(`%s must be HOST:PORT, as in "127.0.0.1:8000", which %s is not`, v.path, v.shown))
		local, port, _ := net.SplitHostPort(def)
		if _, notPort := strconv.ParseUint(v.text, 10, 16); notPort == nil {
			f.suggest(v.suggest(net.JoinHostPort(local, v.text)))
		} else if err != nil && isHost(v.text) && strings.Trim(v.text, "0123456789") != "" {
			f.suggest(v.suggest(net.JoinHostPort(v.text, port)))
		}
		return def
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10))
}

// url reads an http or https URL and drops its trailing slash.
func (t *table) url(key string) string {
	v, _ := t.value(key)
	if u, err := url.Parse(v.text); err == nil && isWeb(u) && u.User == nil && (u.RawQuery != "" || u.ForceQuery || u.Fragment != "") {
		t.d.atValue(v.location, fmt.Sprintf(`%s must be a URL without a query and a fragment, as in "https://hive.example", which %s is not`, v.path, v.shown))
		return ""
	}
	return strings.TrimRight(t.exactURL(key), "/")
}

// exactURL reads an http or https URL to which no path is added.
func (t *table) exactURL(key string) string {
	v, ok := t.value(key)
	if !ok {
		return ""
	}
	u, err := url.Parse(v.text)
	if err == nil && u.User != nil {
		t.d.atValue(v.location, v.path+` must be a URL without user and password, as in "https://hive.example"`)
		return ""
	}
	if err != nil || !isWeb(u) {
		t.d.atValue(v.location, fmt.Sprintf(`%s must be a URL as in "https://hive.example", which %s is not`, v.path, v.shown))
		return ""
	}
	if strings.Contains(v.text, "#") {
		t.d.atValue(v.location, v.path+" must be a URL without a fragment: no server gets what follows #; remove it, or write %23 for a # that is part of the path or query")
		return ""
	}
	t.d.checkCalled(v)
	return v.text
}

// socketURL reads scheme://HOST:PORT, with a scheme of a protocol without HTTP: each has the
// scheme of HTTP that is like it.
func (t *table) socketURL(v value, schemes map[string]string) string {
	u, err := url.Parse(v.text)
	web := url.URL{}
	if err == nil {
		web = url.URL{Scheme: schemes[u.Scheme], Host: u.Host}
	}
	if !isWeb(&web) || web.Port() == "" || strings.TrimRight(v.text, "/") != u.Scheme+"://"+u.Host {
		names := slices.Sorted(maps.Keys(schemes))
		t.d.atValue(v.location, fmt.Sprintf(`%s must be an address as in "%s://hive.example:9000", or with %s`, v.path, names[0], listOf(names[1:])))
		return ""
	}
	if err := egress.CheckURL(web.String()); err != nil {
		t.d.atValue(v.location, fmt.Sprintf("%s: %s", v.path, err))
	}
	return strings.TrimRight(v.text, "/")
}

// origins reads a list of scheme://host[:port].
func (t *table) origins(key string) []string {
	items := t.list(key)
	for _, v := range items {
		u, err := url.Parse(v.text)
		if err == nil && isWeb(u) && v.text == u.Scheme+"://"+u.Host {
			continue
		}
		f := t.d.atValue(v.location, fmt.Sprintf(`%s must be an origin as in "https://api.example.com", which %s is not`, v.path, v.shown))
		if err == nil && isWeb(u) {
			f.suggest(v.suggest(u.Scheme + "://" + u.Host))
		}
	}
	return textsOf(items)
}

func isWeb(u *url.URL) bool {
	if port := u.Port(); port != "" {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false
		}
	}
	return (u.Scheme == "https" || u.Scheme == "http") && u.User == nil && u.Opaque == "" && isHost(u.Hostname())
}

// hosts reads a list of host names without scheme and port.
func (t *table) hosts(key string) []string {
	items := t.list(key)
	for _, v := range items {
		if isHost(v.text) {
			continue
		}
		f := t.d.atValue(v.location, fmt.Sprintf("%s must be a host name without scheme and port, which %s is not", v.path, v.shown))
		host, _, err := net.SplitHostPort(v.text)
		if u, urlErr := url.Parse(v.text); urlErr == nil && isWeb(u) {
			f.suggest(v.suggest(u.Hostname()))
		} else if err == nil && isHost(host) {
			f.suggest(v.suggest(host))
		}
	}
	return textsOf(items)
}

// networks reads a list of addresses and networks in CIDR form.
func (t *table) networks(key string) []netip.Prefix {
	var out []netip.Prefix
	for _, v := range t.list(key) {
		p, err := netip.ParsePrefix(v.text)
		if ip, wrong := netip.ParseAddr(v.text); wrong == nil && ip.Zone() == "" {
			p, err = netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()), nil
		}
		if err != nil || p != p.Masked() {
			f := t.d.atValue(v.location, fmt.Sprintf(`%s must be an address or a network as in "10.0.0.0/8", which %s is not`, v.path, v.shown))
			if err == nil {
				f.suggest(v.suggest(p.Masked().String()))
			}
			continue
		}
		out = append(out, p)
	}
	return out
}
