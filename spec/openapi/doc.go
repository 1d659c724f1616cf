// Package openapi owns what can be read out of spec/openapi.yaml: its
// operations, the two forms in which a host shows it, and the verdict on
// requests and answers by it. It must not know a handler, a client or how
// either is made. Hosts carry what its generator writes; only tests judge.
package openapi
