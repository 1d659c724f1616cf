package rest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"skep/spec"
)

// document is a response body that does not change while the host runs.
type document struct {
	contentType, csp, etag string
	body                   []byte
}

// apiDescription is the OpenAPI description as JSON and as a page.
type apiDescription struct{ json, page document }

func newAPIDescription() apiDescription {
	return apiDescription{
		newDocument("application/json", spec.OpenAPIJSON()),
		newDocument("text/html; charset=utf-8", spec.OpenAPIPage()),
	}
}

// newDocument prepares a document. The content security policy of a page allows
// its own style only.
func newDocument(kind string, body []byte) document {
	sum := sha256.Sum256(body)
	policy := denyAllPolicy
	if _, rest, ok := bytes.Cut(body, []byte("<style>")); ok {
		style, _, _ := bytes.Cut(rest, []byte("</style>"))
		digest := sha256.Sum256(style)
		policy += "; style-src 'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) + "'"
	}
	// A weak tag: the bytes that are sent may be compressed.
	etag := "W/" + strconv.Quote(base64.RawURLEncoding.EncodeToString(sum[:]))
	return document{kind, policy, etag, body}
}

// openAPI is GET /openapi.json.
func (c *call) openAPI() error {
	return c.replyDocument(c.h.description.json)
}

// docs is GET /docs, the same for people.
func (c *call) docs() error {
	return c.replyDocument(c.h.description.page)
}

// replyDocument answers with a document, or 304 when the caller has it.
func (c *call) replyDocument(d document) error {
	head := c.w.Header()
	head.Set("ETag", d.etag)
	head.Set("Cache-Control", "no-cache")
	head.Set("Content-Security-Policy", d.csp)
	if etagMatches(c.r.Header.Values("If-None-Match"), d.etag) {
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	head.Set("Content-Type", d.contentType)
	head.Set("Content-Length", strconv.Itoa(len(d.body)))
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(d.body)
	return nil
}

// etagMatches reports whether an If-None-Match header names the tag.
func etagMatches(values []string, tag string) bool {
	for _, v := range values {
		for one := range strings.SplitSeq(v, ",") {
			one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
			if one == strings.TrimPrefix(tag, "W/") || one == "*" {
				return true
			}
		}
	}
	return false
}
