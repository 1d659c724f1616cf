// Package stream owns the order of a stream's deltas on both sides: how many may be sent
// before they are acknowledged, and what those that arrive become. It must not know where
// deltas come from, nor how they travel.
package stream
