package conform

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"skep/abi"
)

// grants are the keys a request can name.
var grants = []string{"llm", "http", "kv", "secrets"}

// checkRequest wants a value in the form of swarm.toml's allow.
func checkRequest(f *finding, r abi.Request) {
	if !slices.Contains(grants, r.Allow) {
		f.notef("it asks for %q, which no host of this version knows", r.Allow)
		return
	}
	if r.Value == nil {
		return
	}
	if r.Allow == "kv" {
		list := scopes(r.Value)
		if len(list) == 0 || slices.ContainsFunc(list, func(s string) bool { return !isScope(s) }) {
			f.problemf("the request for kv has the value %s, not \"task\", \"agent\" or \"instance\"", clip(string(r.Value)))
		}
		return
	}
	var list []string
	if json.Unmarshal(r.Value, &list) != nil || len(list) == 0 || slices.Contains(list, "") {
		f.problemf("the request for %s has the value %s, not a list of texts", r.Allow, clip(string(r.Value)))
		return
	}
	for i, text := range list {
		if slices.Contains(list[:i], text) {
			f.problemf("the request for %s names %q twice", r.Allow, clip(text))
		}
		if err := requestForms[r.Allow](text); err != nil {
			f.problemf("the request for %s names %q: %v", r.Allow, clip(text), err)
		}
	}
}

// scopes are the scopes of a request for kv, one text or several.
func scopes(value json.RawMessage) (list []string) {
	var one string
	if json.Unmarshal(value, &one) == nil {
		return []string{one}
	}
	_ = json.Unmarshal(value, &list) // what is no list of texts has no scope
	return list
}

var kvScopes = []string{"task", "agent", "instance"}

// isScope reports whether a text is a scope or stands for one in params.
func isScope(text string) bool {
	return slices.Contains(kvScopes, text) || paramsReference.MatchString(text)
}

// paramsReference is a value that stands in the params of an agent or an action.
var paramsReference = regexp.MustCompile(`^\{params(\.[^.{}]+)+\}$`)

var requestForms = map[string]func(string) error{"http": grantForm, "llm": nameForm, "secrets": nameForm}

var localName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// nameForm wants the name of a table in swarm.toml.
func nameForm(text string) error {
	if !localName.MatchString(text) {
		return fmt.Errorf("a name matches %s", localName)
	}
	return nil
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// grantForm wants "[METHODS ]scheme://host[:port][/prefix]". It finds what
// cannot be meant; a host reads closer.
func grantForm(text string) error {
	words, location, ok := strings.Cut(text, " ")
	if !ok {
		words, location = methods[0], text
	}
	for m := range strings.SplitSeq(words, ",") {
		if !slices.Contains(methods, m) {
			return fmt.Errorf("%q is not a method; choose from %s", clip(m), strings.Join(methods, ", "))
		}
	}
	if paramsReference.MatchString(location) {
		return nil
	}
	u, err := url.Parse(location)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Opaque != "":
		return errors.New(`it must be as in "https://api.example.com"`)
	case u.User != nil:
		return errors.New("it must not hold credentials")
	case strings.ContainsAny(location, "?#"):
		return errors.New("it must not have a query or a fragment")
	}
	return hostForm(u)
}

var hostName = regexp.MustCompile(`^(\*|(\*\.[A-Za-z0-9_-]+\.)?[A-Za-z0-9_.-]*[A-Za-z0-9_])$`)

func hostForm(u *url.URL) error {
	_, err := netip.ParseAddr(u.Hostname())
	if err != nil && (!hostName.MatchString(u.Hostname()) || strings.HasPrefix(u.Host, "[")) {
		return fmt.Errorf("%q is no host; it is a name, an address, *.name or *", clip(u.Hostname()))
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || port == 0) {
		return fmt.Errorf("%q is no port", clip(u.Port()))
	}
	return nil
}
