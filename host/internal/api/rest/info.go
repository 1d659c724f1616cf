package rest

import (
	"time"

	"skep/abi"
	"skep/host/internal/api/auth"
	"skep/spec/mail"
)

// protocolVersion is the version of MAIL (S-22).
const protocolVersion = "1.3"

type rootAnswer struct {
	Name string `json:"name"`
	// Peers read protocol_version; the published description has version.
	Protocol string    `json:"protocol_version"`
	Version  string    `json:"version"`
	Swarm    swarmInfo `json:"swarm"`
	Status   string    `json:"status"`
	Uptime   float64   `json:"uptime"`
}

type swarmInfo struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Description string   `json:"description"`
	Entrypoint  string   `json:"entrypoint"`
	Keywords    []string `json:"keywords"`
	Public      bool     `json:"public"`
}

// root is GET / (S-14).
func (c *call) root() error {
	def, err := c.definition()
	if err != nil {
		return err
	}
	return c.reply(rootAnswer{
		Name: "mail", Protocol: protocolVersion, Version: protocolVersion, Status: "running",
		Uptime: c.h.opt.Now().Sub(c.h.swarms.Started()).Seconds(),
		Swarm: swarmInfo{
			Name: def.Name, Version: def.Version, Description: def.Description,
			Entrypoint: def.Entrypoint, Keywords: nonNil(def.Keywords), Public: def.Public,
		},
	})
}

type statusAnswer struct {
	Swarm struct {
		Name   string `json:"name"`
		Status string `json:"status"`
	} `json:"swarm"`
	ActiveUsers int  `json:"active_users"`
	Ready       bool `json:"user_mail_ready"`
	Running     bool `json:"user_task_running"`
}

// status is GET /status (S-16, X-26).
func (c *call) status() error {
	s, err := c.h.swarms.Status(c.ctx(), c.instanceKey())
	if err != nil {
		return err
	}
	a := statusAnswer{ActiveUsers: s.Users, Ready: s.Ready, Running: s.Running}
	a.Swarm.Name, a.Swarm.Status = c.h.opt.Swarm, "ready"
	return c.reply(a)
}

type whoamiAnswer struct {
	ID       string `json:"id"`
	Username string `json:"username"`
	// Role is one of MAIL's. Operator is set for an operator, whose role is admin
	// here.
	Role     auth.Role `json:"role"`
	Operator bool      `json:"operator,omitempty"`
}

// whoami is GET /whoami.
func (c *call) whoami() error {
	who := c.w.who
	a := whoamiAnswer{ID: who.ID, Username: who.ID, Role: who.Role}
	if who.Role == auth.Operator {
		a.Role, a.Operator = auth.Admin, true
	}
	return c.reply(a)
}

// baseURL is the URL under which the caller reaches this host.
func (c *call) baseURL() string {
	if c.h.opt.PublicURL != "" {
		return c.h.opt.PublicURL
	}
	if c.r.TLS != nil {
		return "https://" + c.r.Host
	}
	return "http://" + c.r.Host
}

type versionAnswer struct {
	Version  string `json:"version"`
	Protocol string `json:"protocol_version"`
	ABI      int    `json:"abi"`
}

// version is GET /skep/v1/version.
func (c *call) version() error { return c.reply(newVersion(c.h.opt.Version)) }

func newVersion(program string) versionAnswer {
	return versionAnswer{program, protocolVersion, abi.Version}
}

// nonNil makes an empty list [] instead of null in JSON.
func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func formatTime(t time.Time) string { return mail.FormatTime(t) }
