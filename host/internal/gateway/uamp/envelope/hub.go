package envelope

import (
	"encoding/json"
	"time"

	"skep/host/internal/gateway/wire"
)

// Limits of a hub list.
const (
	maxHub      = 1 << 20 // bytes
	maxChildren = 1000
	maxAnchors  = 64
)

// Hub lists manifests and whom to trust (U-102). The document has no schema for it: what
// others write besides is left out (D-U18).
type Hub struct {
	Version   string    `json:"uamp_hub"`
	Manifests []Child   `json:"manifests"`
	Anchors   []Anchor  `json:"trust_anchors"`
	Updated   time.Time `json:"updated"`
}

// Child is one manifest of a hub, with the hash of what is signed.
type Child struct {
	Agent  string `json:"agent"`
	URL    string `json:"url"`
	SHA256 string `json:"sha256"`
	// Err is why the item does not count, nil if it may.
	Err error `json:"-"`
}

// Anchor is whom a hub trusts: a DID, the address of a key set, or a certificate.
type Anchor struct {
	Type  string `json:"type"` // did, jwks or x509
	Value string `json:"value"`
}

// HubVersion is the uamp_hub of our lists.
const HubVersion = "1.0"

// ReadHub reads a hub list. Nothing in it is to be trusted by itself. What is wrong with an item is
// its Err.
func ReadHub(text []byte) (h Hub, err error) {
	if len(text) > maxHub {
		return h, Faultf(TooLarge, "the hub list has more than %d bytes", maxHub)
	}
	if _, err := wire.Canonical(text, wire.AsSent, 8); err != nil {
		return h, malformed("the hub list %v", err)
	}
	if !isObject(text) || json.Unmarshal(text, &h) != nil || h.Version != HubVersion {
		return h, malformed("it is no hub list of version %s", HubVersion)
	}
	if len(h.Manifests) > maxChildren || len(h.Anchors) > maxAnchors {
		return h, Faultf(TooLarge, "the hub list has more than %d manifests or %d trust anchors", maxChildren, maxAnchors)
	}
	for i := range h.Manifests {
		c := &h.Manifests[i]
		switch {
		case !isURI(c.Agent):
			c.Err = malformed("item %d of manifests has no agent, but %.100q", i+1, c.Agent)
		case !isURI(c.URL):
			c.Err = malformed("item %d of manifests, for %.100s, has no url, but %.100q", i+1, c.Agent, c.URL)
		case !hashPattern.MatchString("sha256:" + c.SHA256):
			c.Err = malformed("item %d of manifests, for %.100s, has no sha256 of 64 hexadecimal digits, but %.100q", i+1, c.Agent, c.SHA256)
		}
	}
	return h, nil
}
