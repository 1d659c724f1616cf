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

// document is something that never changes while the host runs.
type document struct {
	kind, policy, tag string
	body              []byte
}

// described is the description of the interface in its two forms.
type described struct{ forPrograms, forPeople document }

func newDescribed() described {
	return described{
		newDocument("application/json", spec.OpenAPIJSON()),
		newDocument("text/html; charset=utf-8", spec.OpenAPIPage()),
	}
}

// newDocument prepares a document. A page may use the style that stands in it,
// and nothing else.
func newDocument(kind string, body []byte) document {
	sum := sha256.Sum256(body)
	policy := nothingElse
	if _, rest, ok := bytes.Cut(body, []byte("<style>")); ok {
		style, _, _ := bytes.Cut(rest, []byte("</style>"))
		digest := sha256.Sum256(style)
		policy += "; style-src 'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) + "'"
	}
	return document{kind, policy, strconv.Quote(base64.RawURLEncoding.EncodeToString(sum[:])), body}
}

// openAPI is GET /openapi.json.
func (c *call) openAPI() error {
	return c.replyDocument(c.h.described.forPrograms)
}

// docs is GET /docs, the same for people.
func (c *call) docs() error {
	return c.replyDocument(c.h.described.forPeople)
}

// replyDocument answers with a document, or says that the caller has it.
func (c *call) replyDocument(d document) error {
	head := c.w.Header()
	head.Set("ETag", d.tag)
	head.Set("Cache-Control", "no-cache")
	head.Set("Content-Security-Policy", d.policy)
	if match(c.r.Header.Values("If-None-Match"), d.tag) {
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	head.Set("Content-Type", d.kind)
	head.Set("Content-Length", strconv.Itoa(len(d.body)))
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(d.body)
	return nil
}

// match reports whether a caller has what bears the tag.
func match(values []string, tag string) bool {
	for _, v := range values {
		for one := range strings.SplitSeq(v, ",") {
			one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
			if one == tag || one == "*" {
				return true
			}
		}
	}
	return false
}
