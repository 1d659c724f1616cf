// Package oidc owns authentication by external backends: JSON Web Tokens that an
// issuer has signed, and the two endpoints that MAIL's reference uses. It must
// not know where they are configured, what a caller wants, or the host's own
// keys. It sends requests to the configured addresses only, bounded in time and
// size, and follows no redirect. It starts no goroutine; a caller that needs
// something fetches it, once for all who wait.
package oidc
