// Package authority owns what others say about who a caller is: JSON Web
// Tokens that an issuer has signed, and the two endpoints that MAIL's reference
// asks. It must not know where they are configured, what a caller wants, or the
// host's own keys. It makes requests to the configured addresses and to no
// other, each bounded in time and size, and follows no redirect. It starts no
// goroutine; what has to be fetched is fetched by the caller who needs it, once
// for all who wait.
package authority
