package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// Token is a token that a host has made, without its text.
type Token struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// Role is "admin", "user" or "agent".
	Role string `json:"role"`
	// Principal is whose it is.
	Principal string `json:"principal"`
	// Peer is the swarm that an agent's speaks for.
	Peer  string `json:"peer,omitempty"`
	Label string `json:"label"`
	// By is who had it made.
	By string `json:"by"`
	// State is "valid", "expired" or "revoked".
	State   string    `json:"state"`
	Created time.Time `json:"created"`
	// Nil times have not happened; of Expires it means never.
	Expires *time.Time `json:"expires"`
	Used    *time.Time `json:"last_used"`
	Revoked *time.Time `json:"revoked"`
}

// NewToken is a token that was just made. Its text is had nowhere else.
type NewToken struct {
	Text string `json:"token"`
	Token
}

// TokenWish is a token to make. Role and ID are required.
type TokenWish struct {
	Role   string `json:"role"`
	ID     string `json:"id"`
	Tenant string `json:"tenant,omitempty"`
	Peer   string `json:"peer,omitempty"`
	Label  string `json:"label,omitempty"`
	// TTL is how long it lives, in seconds: nil for the host's default, 0 until
	// it is revoked.
	TTL *int64 `json:"ttl_seconds,omitempty"`
}

const tokensPath = "/skep/v1/tokens"

// CreateToken has a token made. It takes an admin. It is not repeated: a token
// whose text was lost on the way would stay.
func (c *Client) CreateToken(ctx context.Context, wish TokenWish) (NewToken, error) {
	// A struct of strings and a number always encodes.
	body, _ := json.Marshal(wish)
	var t NewToken
	_, err := c.do(ctx, call{method: http.MethodPost, path: tokensPath, body: body}, &t)
	return t, err
}

// Tokens lists the tokens that the caller may see, oldest first: an admin its
// tenant's, an operator one tenant's, or with an empty one all.
func (c *Client) Tokens(ctx context.Context, tenant string) ([]Token, error) {
	var all []Token
	query := url.Values{"limit": {"1000"}}
	if tenant != "" {
		query.Set("tenant", tenant)
	}
	for {
		var page struct {
			Tokens []Token `json:"tokens"`
			Next   *string `json:"next"`
		}
		if _, err := c.do(ctx, call{method: http.MethodGet, path: tokensPath + "?" + query.Encode()}, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Tokens...)
		if page.Next == nil {
			return all, nil
		}
		query.Set("after", *page.Next)
	}
}

// RevokeToken ends a token for good, by its id.
func (c *Client) RevokeToken(ctx context.Context, id string) (Token, error) {
	var t Token
	_, err := c.do(ctx, call{method: http.MethodDelete, path: tokensPath + "/" + url.PathEscape(id), again: true}, &t)
	return t, err
}
