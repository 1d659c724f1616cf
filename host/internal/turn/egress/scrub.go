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

// minSecretWord is the length in bytes from which the last word of a secret is also
// scrubbed: of "Bearer TOKEN", servers repeat only the token.
const minSecretWord = 8

// Scrubber replaces the values of secrets in text from outside. It finds the usual
// encodings of a value; a server that encodes a value in another way gets past it. The
// operator trusts the hosts of a secret with the secret. It is safe for concurrent use.
type Scrubber struct {
	replacer *strings.Replacer
	forms    []string
	lower    []string
}

// NewScrubber returns a scrubber for these secrets.
func NewScrubber(secrets ...Secret) *Scrubber {
	type pair struct{ form, placeholder string }
	var pairs []pair
	s := &Scrubber{}
	for _, secret := range secrets {
		for _, form := range forms(secret.value) {
			pairs = append(pairs, pair{form, secret.placeholder()})
			s.forms = append(s.forms, form)
			s.lower = append(s.lower, strings.ToLower(form))
		}
	}
	// The longest form first: one secret may be a prefix of another.
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(len(b.form), len(a.form)) })
	var oldnew []string
	for _, p := range pairs {
		oldnew = append(oldnew, p.form, p.placeholder)
	}
	s.replacer = strings.NewReplacer(oldnew...)
	return s
}

// forms returns the encodings in which servers repeat a value; none for an empty one.
func forms(value string) []string {
	if value == "" {
		return nil
	}
	words := []string{value}
	if i := strings.LastIndexByte(value, ' '); i >= 0 && len(value)-i-1 >= minSecretWord {
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

// Text returns text with each value replaced by the name of its secret.
func (s *Scrubber) Text(text string) string { return s.replacer.Replace(text) }

// PartialLen returns the length in bytes of the longest suffix of text that may be
// the beginning of a value. Text that comes in pieces holds that suffix back.
func (s *Scrubber) PartialLen(text string) int {
	longest := 0
	for _, form := range s.forms {
		for n := min(len(form)-1, len(text)); n > longest; n-- {
			if strings.HasPrefix(form, text[len(text)-n:]) {
				longest = n
			}
		}
	}
	return longest
}

// holds reports whether text contains a secret, ignoring case.
func (s *Scrubber) holds(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(s.lower, func(form string) bool { return strings.Contains(text, form) })
}
