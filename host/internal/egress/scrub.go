package egress

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// minWord is the length from which the last word of a secret is looked for by
// itself: of "Bearer TOKEN", servers repeat only the token.
const minWord = 8

// scrubber replaces the values of secrets in what comes from outside. A server
// that repeats a value in a form of its own making gets past it; the operator
// trusts the hosts of a secret with the secret.
type scrubber struct {
	replacer *strings.Replacer
	forms    []string
	lower    []string
}

func newScrubber(secrets []Secret) *scrubber {
	type pair struct{ form, placeholder string }
	var pairs []pair
	s := &scrubber{}
	for _, secret := range secrets {
		for _, form := range forms(secret.value) {
			pairs = append(pairs, pair{form, secret.placeholder()})
			s.forms = append(s.forms, form)
			s.lower = append(s.lower, strings.ToLower(form))
		}
	}
	// The longest form first: a secret may begin with another one.
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(len(b.form), len(a.form)) })
	var oldnew []string
	for _, p := range pairs {
		oldnew = append(oldnew, p.form, p.placeholder)
	}
	s.replacer = strings.NewReplacer(oldnew...)
	return s
}

// forms are the ways in which servers repeat a value.
func forms(value string) []string {
	words := []string{value}
	if i := strings.LastIndexByte(value, ' '); i >= 0 && len(value)-i-1 >= minWord {
		words = append(words, value[i+1:])
	}
	var out []string
	for _, w := range words {
		out = append(out, w, quoted(w, true), quoted(w, false), strings.ReplaceAll(quoted(w, false), "/", `\/`), url.QueryEscape(w), url.PathEscape(w),
			base64.RawStdEncoding.EncodeToString([]byte(w)), base64.RawURLEncoding.EncodeToString([]byte(w)),
			hex.EncodeToString([]byte(w)))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func quoted(text string, html bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if enc.Encode(text) != nil {
		return text
	}
	return strings.Trim(strings.TrimSpace(b.String()), `"`)
}

func (s *scrubber) text(text string) string { return s.replacer.Replace(text) }

// holds reports whether text has a secret in any case of its letters.
func (s *scrubber) holds(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(s.lower, func(form string) bool { return strings.Contains(text, form) })
}
