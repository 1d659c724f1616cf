package hub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"skep/host/internal/gateway/uamp/did"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
)

const (
	// maxConcurrent bounds the agents whose manifests are fetched at once.
	maxConcurrent = 8
	// agentTime bounds the fetches of one agent's manifest and document.
	agentTime = 20 * time.Second
)

// ErrNoList is returned for a host without a list.
var ErrNoList = errors.New("there is no hub list")

// Agent is an agent of a list, with what its own manifest and DID document show.
type Agent struct {
	DID did.ID
	// Name is the DID as the list has it.
	Name string
	// Manifest is signed with one of Keys, which its DID document has.
	Manifest envelope.Manifest
	Keys     []seal.PublicKey
	// Err is why the agent does not count, nil if it does.
	Err error
}

// errListedTwice is the Err of an agent that the list has before.
var errListedTwice = errors.New("the list has it more than once: the first entry counts")

// Read fetches the list of the host at a URL, and verifies each of its agents once. One that is
// there several times has a second entry with an error. Agents keep
// the order of the list; hosts in it are left out, and its addresses are not followed. An error
// is about the list; what is wrong with an agent is its Err.
func Read(ctx context.Context, client *http.Client, base string) ([]Agent, error) {
	list, err := FetchList(ctx, client, base+ListPath)
	switch {
	case err != nil:
		return nil, err
	case list.Version == "":
		return nil, ErrNoList
	}
	v := verifier{client, did.NewResolver(client.Transport, slog.New(slog.DiscardHandler))}
	var agents []Agent
	var children []envelope.Child
	listed := map[string]int{}
	for _, child := range list.Manifests {
		id, err := did.Parse(child.Agent)
		if err == nil {
			err = child.Err
		}
		if isHost := err == nil && id.Host() != "" && len(id.Path()) == 0; isHost || listed[child.Agent] > 1 {
			continue
		}
		if listed[child.Agent]++; listed[child.Agent] == 2 {
			err = errListedTwice
		}
		agents, children = append(agents, Agent{DID: id, Name: child.Agent, Err: err}), append(children, child)
	}
	var group errgroup.Group
	group.SetLimit(maxConcurrent)
	for i := range agents {
		group.Go(func() error {
			if agents[i].Err == nil {
				agents[i].Err = v.verify(ctx, &agents[i], children[i])
			}
			return nil
		})
	}
	return agents, group.Wait()
}

// verifier fetches and checks the manifests of agents.
type verifier struct {
	client   *http.Client
	resolver *did.Resolver
}

// verify fills an agent with what it shows itself, and returns why it does not count.
func (v verifier) verify(ctx context.Context, a *Agent, listed envelope.Child) error {
	switch {
	case a.DID.Host() == "":
		return errors.New("it has no host that shows its manifest")
	case strings.Contains(a.Name, "*"):
		return errors.New("its DID has a star, which the ids of a partner read as any text")
	}
	ctx, cancel := context.WithTimeout(ctx, agentTime)
	defer cancel()
	at := ManifestURL(a.DID)
	text, err := FetchSigned(ctx, v.client, at)
	if err != nil {
		return err
	}
	if text == "" {
		return fmt.Errorf("there is no manifest at %s", at)
	}
	h, err := seal.ReadDocumentHeader(text)
	if err != nil {
		return fmt.Errorf("its manifest: %w", err)
	}
	document, err := v.resolver.Resolve(ctx, a.Name, h.KeyID, a.Name) // each is fetched once
	if err != nil {
		return err
	}
	payload, err := seal.ReadDocument(text, a.Name, document.Keys, time.Now())
	if err != nil {
		return fmt.Errorf("its manifest: %w", err)
	}
	if sum := sha256.Sum256(payload); hex.EncodeToString(sum[:]) != listed.SHA256 {
		return errors.New("the list has another hash than its manifest")
	}
	if a.Manifest, err = envelope.ReadManifest(payload); err != nil {
		return fmt.Errorf("its manifest: %w", err)
	}
	a.Keys = document.Keys
	return nil
}
