package rest

import (
	"cmp"
	"time"

	"skep/host/internal/telemetry/loglevel"
)

// logLevelPath is the path of the routes about what is logged.
const logLevelPath = skepPrefix + "log/level"

// setLevel is a level that is set for a while, as JSON.
type setLevel struct {
	Component string `json:"component"`
	Level     string `json:"level"`
	Until     string `json:"until"`
}

// showLogLevels is GET /skep/v1/log/level.
func (c *call) showLogLevels() error {
	levels, set := c.h.opt.LogLevels, []setLevel{}
	for _, one := range levels.List() {
		set = append(set, setLevel{one.Component, loglevel.Name(one.Level), formatTime(one.Until)})
	}
	return c.reply(struct {
		Level      string     `json:"level"`
		Components []string   `json:"components"`
		Set        []setLevel `json:"set"`
		SpeaksFor  string     `json:"speaks_for"`
	}{loglevel.Name(levels.Base()), append([]string{}, levels.Components()...), set, "host"})
}

// setLogLevel is POST /skep/v1/log/level.
func (c *call) setLogLevel() error {
	o, err := c.bodyObject()
	if err != nil {
		return err
	}
	var name, component string
	if err := o.readTexts(textField{"level", &name}, textField{"component", &component}); err != nil {
		return err
	}
	length := loglevel.DefaultTime
	if raw, has := o.get("seconds"); has {
		n, ok := parseInteger(raw)
		if !ok || n < int64(loglevel.MinTime/time.Second) || n > int64(loglevel.MaxTime/time.Second) {
			return badRequest("seconds must be a number from %d to %d", int64(loglevel.MinTime/time.Second), int64(loglevel.MaxTime/time.Second))
		}
		length = time.Duration(n) * time.Second
	}
	level, err := loglevel.Parse(truncate(name))
	component = truncate(component)
	if err == nil {
		err = c.h.opt.LogLevels.Check(component)
	}
	if err != nil {
		err = badRequest("%v", err)
	}
	if err := c.auditAct("log.level", cmp.Or(component, "all")+"="+truncate(name)+" for "+length.String(), err); err != nil {
		return err
	}
	c.h.opt.LogLevels.Set(component, level, length)
	return c.showLogLevels()
}
