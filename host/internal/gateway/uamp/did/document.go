package did

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"skep/host/internal/gateway/uamp/seal"
	"skep/host/internal/gateway/wire"
)

// Limits of a document.
const (
	MaxDocument = 64 << 10 // bytes
	maxDepth    = 16       // levels of its JSON
	maxMethods  = 32
	maxServices = 32
)

// Document is what a DID stands for.
type Document struct {
	ID string
	// Keys may sign for it: they are in assertionMethod or authentication.
	Keys     []seal.PublicKey
	Services []Service
	// leftOut is why the first key that does not count is not in Keys.
	leftOut error
}

// Service is an endpoint of a document.
type Service struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Endpoint string `json:"serviceEndpoint"`
}

// Service returns the endpoint of the first service of a type, empty for none.
func (d Document) Service(kind string) string {
	for _, s := range d.Services {
		if s.Type == kind {
			return s.Endpoint
		}
	}
	return ""
}

// HasKey reports whether a key of the document has an id.
func (d Document) HasKey(id string) bool {
	return slices.ContainsFunc(d.Keys, func(k seal.PublicKey) bool { return k.ID == id })
}

// wireDocument is a document as others may write it. A relation has ids of keys, or keys.
type wireDocument struct {
	Context        []string          `json:"@context,omitempty"`
	ID             string            `json:"id"`
	Methods        []wireMethod      `json:"verificationMethod,omitempty"`
	Assertion      []json.RawMessage `json:"assertionMethod,omitempty"`
	Authentication []json.RawMessage `json:"authentication,omitempty"`
	Services       []json.RawMessage `json:"service,omitempty"`
}

type wireMethod struct {
	ID         string          `json:"id"`
	Type       string          `json:"type"`
	Controller string          `json:"controller"`
	JWK        json.RawMessage `json:"publicKeyJwk,omitempty"`
	Multibase  string          `json:"publicKeyMultibase,omitempty"`
}

// ReadDocument reads the document of an identifier. Keys and services of other kinds are
// left out.
func ReadDocument(id string, text []byte) (d Document, err error) {
	if len(text) > MaxDocument {
		return d, fmt.Errorf("the document has more than %d bytes", MaxDocument)
	}
	if _, err := wire.Canonical(text, wire.AsSent, maxDepth); err != nil {
		return d, fmt.Errorf("the document %w", err)
	}
	var w struct {
		wireDocument
		Context json.RawMessage `json:"@context"` // of any form
	}
	if err := json.Unmarshal(text, &w); err != nil {
		return d, errors.New("the document is not of a DID's form")
	}
	if w.ID != id {
		return d, fmt.Errorf("the document is of %.200q", w.ID)
	}
	if len(w.Methods) > maxMethods || len(w.Services) > maxServices || len(w.Assertion)+len(w.Authentication) > 2*maxMethods {
		return d, errors.New("the document has too many keys or services")
	}
	d.ID = id
	for _, relation := range slices.Concat(w.Assertion, w.Authentication) {
		m, ok := w.method(relation)
		k, err := m.key(id)
		switch {
		case ok && err != nil && d.leftOut == nil:
			d.leftOut = fmt.Errorf("its key %.200q: %w", m.ID, err)
		case ok && err == nil && !d.HasKey(k.ID):
			d.Keys = append(d.Keys, k)
		}
	}
	for _, raw := range w.Services {
		var s Service
		if json.Unmarshal(raw, &s) == nil {
			s.ID = absolute(id, s.ID)
			d.Services = append(d.Services, s)
		}
	}
	return d, nil
}

// method returns what a relation names or has.
func (w wireDocument) method(relation json.RawMessage) (m wireMethod, ok bool) {
	if bytes.HasPrefix(relation, []byte("{")) {
		return m, json.Unmarshal(relation, &m) == nil
	}
	var name string
	if json.Unmarshal(relation, &name) != nil {
		return m, false
	}
	i := slices.IndexFunc(w.Methods, func(m wireMethod) bool { return absolute(w.ID, m.ID) == absolute(w.ID, name) })
	if i < 0 {
		return m, false
	}
	return w.Methods[i], true
}

// key reads a key that the document's subject holds itself.
func (m wireMethod) key(of string) (seal.PublicKey, error) {
	id := absolute(of, m.ID)
	if OfURL(id) != of || id == of || m.Controller != "" && m.Controller != of {
		return seal.PublicKey{}, errors.New("the key is not the subject's own")
	}
	if m.Multibase != "" {
		return seal.ParseMultikey(id, m.Multibase)
	}
	return seal.ParseJWK(id, m.JWK)
}

// absolute is the id of a part of a document.
func absolute(of, id string) string {
	if strings.HasPrefix(id, "#") {
		return of + id
	}
	return id
}

// MarshalJSON writes a document of ours: each key as a JSON Web Key, for every relation.
func (d Document) MarshalJSON() ([]byte, error) {
	w := wireDocument{Context: []string{"https://www.w3.org/ns/did/v1", "https://w3id.org/security/suites/jws-2020/v1"}, ID: d.ID}
	for _, k := range d.Keys {
		w.Methods = append(w.Methods, wireMethod{ID: k.ID, Type: "JsonWebKey2020", Controller: d.ID, JWK: k.JWK()})
		name, err := json.Marshal(k.ID)
		if err != nil {
			return nil, err
		}
		w.Assertion = append(w.Assertion, name)
	}
	w.Authentication = w.Assertion
	for _, s := range d.Services {
		raw, err := json.Marshal(s)
		if err != nil {
			return nil, err
		}
		w.Services = append(w.Services, raw)
	}
	return json.Marshal(w)
}
