package amp

import (
	"slices"

	"skep/host/internal/gateway/amp/message"
)

// maxBounds is how many contexts may bound one.
const maxBounds = 16

// addBounds bounds a context by the contexts that bound its source. The source itself is a bound
// unless the caller, who makes the context, may write all sources (M-057).
func (c *sharedContext) addBounds(source sharedContext, writes bool) {
	c.bounds = append(c.bounds, source.bounds...)
	if !writes {
		c.bounds = append(c.bounds, source)
	}
	for _, bound := range c.bounds {
		if !slices.Contains(c.Bounds, bound.ID) {
			c.Bounds = append(c.Bounds, bound.ID)
		}
	}
}

// applyBounds refuses access that a bound does not give, and ends the context with the first of its
// bounds.
func (c *sharedContext) applyBounds() error {
	if len(c.Bounds) > maxBounds {
		return message.Faultf(message.InsufficientResources, message.ReasonFull, "the context would have memory of %d contexts that its makers may not write, more than %d", len(c.Bounds), maxBounds)
	}
	for _, bound := range c.bounds {
		if !bound.covers(c.Access) {
			return message.Faultf(message.AuthenticationFailed, message.ReasonForbidden, "access_control is wider than that of a source: the agent that made the context may not write each of its sources")
		}
		if bound.Expires.Before(c.Expires) {
			c.Expires = bound.Expires
		}
	}
	return nil
}
