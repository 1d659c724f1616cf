package rest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// ignoredHeader names what the request has and no handler reads.
const ignoredHeader = "X-Skep-Ignored"

// maxIgnored bounds how many names the header has.
const maxIgnored = 8

// setIgnored sets the header for members of the body, and for parameters of the
// query as "?name".
func (c *call) setIgnored(head http.Header) {
	var names []string
	for name := range c.r.URL.Query() {
		if !slices.Contains(c.asked, name) {
			names = append(names, "?"+name)
		}
	}
	slices.Sort(names)
	if c.members != nil {
		names = append(names, c.members.unread()...)
	}
	if len(names) == 0 {
		return
	}
	if more := len(names) - maxIgnored; more > 0 {
		names = append(names[:maxIgnored], "and "+strconv.Itoa(more)+" more")
	}
	for i, name := range names {
		names[i] = strings.ReplaceAll(encodeHeader(truncate(name)), ",", "%2C")
	}
	head.Set(ignoredHeader, strings.Join(names, ", "))
}
