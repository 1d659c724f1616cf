package envelope

import (
	"encoding/json"
	"mime"
	"regexp"
	"slices"
	"strings"

	"skep/host/internal/gateway/wire"
)

// Version is the agent of our manifests.
const Version = "uamp/1.0"

// ManifestType is the media type of a signed manifest or hub list (U-015).
const ManifestType = "application/manifest+jws"

// Ways to authenticate in a manifest.
const (
	AuthOAuth2 = "oauth2"
	AuthMTLS   = "mtls"
)

// Limits of a manifest.
const (
	maxManifest    = 64 << 10 // bytes
	maxManifestLen = 256      // items of a list
)

// Manifest is what an agent takes (U-100). Who it is of is in its signature (D-U20).
type Manifest struct {
	Agent       string         `json:"agent"`
	Description string         `json:"description"`
	Intents     []string       `json:"intents"`
	BodyTypes   []string       `json:"body_types"`
	Auth        []string       `json:"auth"`
	Limits      ManifestLimits `json:"limits"`
}

// ManifestLimits are the limits of a manifest; 0 is none.
type ManifestLimits struct {
	MaxBodyKB int `json:"max_body_kb,omitempty"`
	// RateLPH is in envelopes an hour (D-U17).
	RateLPH int `json:"rate_lph,omitempty"`
}

// agentPattern is the document's, whose escape is no JSON (D-U3).
var agentPattern = regexp.MustCompile(`^uamp/1\.[0-9]+$`)

// ReadManifest reads the payload of a signed manifest by the schema of appendix A.3, which
// takes no other properties.
func ReadManifest(text []byte) (Manifest, error) {
	if len(text) > maxManifest {
		return Manifest{}, Faultf(TooLarge, "the manifest has more than %d bytes", maxManifest)
	}
	if _, err := wire.Canonical(text, wire.AsSent, 8); err != nil {
		return Manifest{}, malformed("the manifest %v", err)
	}
	m := readMembers(text, "")
	out := Manifest{
		Agent: m.text("agent", "", 32), Description: m.text("description", "", maxManifest),
		Intents: m.texts("intents"), BodyTypes: m.texts("body_types"), Auth: m.texts("auth"),
	}
	limits := members{of: "limits", all: m.object("limits")}
	out.Limits = ManifestLimits{limits.integer("max_body_kb", -maxInteger, 0), limits.integer("rate_lph", -maxInteger, 0)}
	limits.refuseOthers("max_body_kb", "rate_lph")
	names := []string{"agent", "description", "intents", "body_types", "auth", "limits"}
	m.require(names...)
	m.refuseOthers(names...)
	if !agentPattern.MatchString(out.Agent) {
		m.fail("agent", "is not uamp/1. and a number")
	}
	if slices.ContainsFunc(out.Auth, func(way string) bool { return way != AuthOAuth2 && way != AuthMTLS }) {
		m.fail("auth", "has what is neither oauth2 nor mtls")
	}
	if m.err == nil {
		m.err = limits.err
	}
	return out, m.err
}

// texts reads a list of strings.
func (m *members) texts(name string) (list []string) {
	for _, raw := range m.list(name, maxManifestLen) {
		one := members{of: name, all: map[string]json.RawMessage{"": raw}, err: m.err}
		list = append(list, one.text("", "", maxAddress))
		m.err = one.err
	}
	return list
}

// Check returns why an agent with the manifest would refuse an envelope of so many bytes.
func (m Manifest) Check(e Envelope, size int) error {
	if !slices.Contains(m.Intents, string(e.Intent)) {
		return Faultf(Unsupported, "the manifest of the recipient does not list the intent %s", e.Intent)
	}
	kind, _, err := mime.ParseMediaType(e.Body.Type)
	if err != nil || !slices.ContainsFunc(m.BodyTypes, func(pattern string) bool { return takes(pattern, kind) }) {
		return Faultf(Unsupported, "the manifest of the recipient does not list the body type %.60q", e.Body.Type)
	}
	if most := m.Limits.MaxBodyKB; most > 0 && size > most<<10 {
		return Faultf(TooLarge, "the manifest of the recipient takes at most %d KiB", most)
	}
	return nil
}

// takes reports whether a media type is one of a manifest's, which may end with a star.
func takes(pattern, kind string) bool {
	pattern, _, _ = strings.Cut(strings.ToLower(pattern), ";")
	pattern = strings.TrimSpace(pattern)
	if begin, is := strings.CutSuffix(pattern, "/*"); is {
		return begin == "*" || strings.HasPrefix(kind, begin+"/")
	}
	return pattern == kind
}
