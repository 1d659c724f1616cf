package hub

import (
	"context"
	"io"
	"mime"
	"net/http"
	"strings"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/did"
	"skep/host/internal/gateway/uamp/envelope"
)

// ListPath is where a host has its list.
const ListPath = "/.well-known/agent-hub.json"

// Names of what is beside a DID document.
const (
	DocumentName = "did.json"
	ManifestName = "agent-manifest.json"
)

// Limits of what others serve, in bytes.
const (
	maxList     = 1 << 20
	maxManifest = 128 << 10 // signed
)

// ManifestURL is where the manifest of an agent is, beside its DID document (U-101).
func ManifestURL(id did.ID) string { return strings.TrimSuffix(id.URL(), DocumentName) + ManifestName }

// FetchList fetches a hub list; where there is none, it is without a version.
func FetchList(ctx context.Context, client *http.Client, at string) (h envelope.Hub, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return h, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return h, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNotFound:
		return h, nil
	case http.StatusOK:
	default:
		return h, &gateway.StatusError{Code: resp.StatusCode}
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxList+1))
	if err != nil {
		return h, err
	}
	return envelope.ReadHub(text)
}

// FetchSigned fetches a signed manifest, empty where there is none.
func FetchSigned(ctx context.Context, client *http.Client, at string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return "", gateway.Refuse("%.200q cannot be read: %v", at, err)
	}
	req.Header.Set("Accept", envelope.ManifestType)
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK || kind != envelope.ManifestType {
		return "", nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxManifest+1))
	if err == nil && len(text) > maxManifest {
		err = gateway.Refuse("%s has more than %d bytes", at, maxManifest)
	}
	return string(text), err
}
