package mcp

import (
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"skep/host/internal/gateway"
)

// metadataPath is where the documents begin that name who issues tokens for the gateway
// (https://www.rfc-editor.org/rfc/rfc9728).
const metadataPath = "/.well-known/oauth-protected-resource"

// metadataURL is the address of the documents, empty for a host that takes only its own keys.
func (g *Gateway) metadataURL() string {
	if g.opt.PublicURL == "" || len(g.opt.AuthorizationServers) == 0 {
		return ""
	}
	return strings.TrimSuffix(g.opt.PublicURL, "/") + metadataPath
}

// metadata are the documents.
func (g *Gateway) metadata() []gateway.Mount {
	if g.metadataURL() == "" {
		return nil
	}
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resource := strings.TrimPrefix(r.URL.Path, metadataPath)
		if resource == "" {
			resource = "/mcp"
		}
		if resource != "/mcp" && !strings.HasPrefix(resource, "/mcp/") {
			http.NotFound(w, r)
			return
		}
		auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
			Resource: strings.TrimSuffix(g.opt.PublicURL, "/") + resource, ResourceName: "skep",
			AuthorizationServers: g.opt.AuthorizationServers, BearerMethodsSupported: []string{"header"},
		}).ServeHTTP(w, r)
	})
	return []gateway.Mount{
		{Method: http.MethodGet, Pattern: metadataPath, Handler: serve},
		{Method: http.MethodGet, Pattern: metadataPath + "/*rest", Handler: serve},
	}
}
