package gateway

import (
	"context"
	"fmt"
	"net/http"
)

// CheckCredential requests an address of a partner of a gateway which only those with a credential may
// read, and returns the refusal of ours. Anything else that the partner answers is no fault of it.
func CheckCredential(ctx context.Context, gateway string, p Partner, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := p.Client.Do(req)
	if err != nil {
		return nil // the next request meets what is wrong with the network
	}
	_ = resp.Body.Close()
	return CredentialRefused(gateway, p, resp.StatusCode)
}

// CredentialRefused is the error of a status by which a partner of a gateway refuses our credential,
// nil for other statuses.
func CredentialRefused(gateway string, p Partner, status int) error {
	if status != http.StatusUnauthorized && status != http.StatusForbidden {
		return nil
	}
	return fmt.Errorf("%w: look at auth_token in [gateways.%s.partners.%s]", &StatusError{Code: status}, gateway, p.Name)
}
