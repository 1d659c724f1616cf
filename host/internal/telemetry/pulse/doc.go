// Package pulse owns the live feed of what happens on a host: the last events with their
// order, and readers that follow them. It must not know content, nor hold up who publishes.
package pulse
