package gateway

import "net/url"

// ResolveLocation resolves a Location in the answer to a request. It must be on the partner's
// own host, else it is a [Refusal]: the credential is shown to no other.
func ResolveLocation(from *url.URL, location string) (string, error) {
	to, err := from.Parse(location)
	if err != nil || to.Host != from.Host || to.Scheme != from.Scheme || to.User != nil {
		return "", Refuse("the Location %.200q is not on the partner's own host", location)
	}
	return to.String(), nil
}
