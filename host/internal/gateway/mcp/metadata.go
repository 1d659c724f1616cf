package mcp

import (
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"skep/host/internal/gateway"
)

// metadata are the documents that name who issues tokens for the gateway
// (https://www.rfc-editor.org/rfc/rfc9728). A host that takes only its own keys has none.
func (g *Gateway) metadata() []gateway.Mount {
	if g.opt.PublicURL == "" || len(g.opt.AuthorizationServers) == 0 {
		return nil
	}
	const path = "/.well-known/oauth-protected-resource"
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resource := strings.TrimPrefix(r.URL.Path, path)
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
		{Method: http.MethodGet, Pattern: path, Handler: serve},
		{Method: http.MethodGet, Pattern: path + "/*rest", Handler: serve},
	}
}
