package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/result"
)

// ElsewhereError refuses to add samples to those of another environment.
type ElsewhereError struct {
	// Differs names what is different, "CPU: A → B".
	Differs []string
}

func (e *ElsewhereError) Error() string {
	return "this is not where the recorded samples were measured: " + strings.Join(e.Differs, "; ")
}

// goOn makes env that of a run that goes on: it began when the first one did,
// and what has changed since then is reported like any change in mid-campaign.
func goOn(env *result.Environment, first result.Environment) {
	env.Started = first.Started
	for _, c := range append(first.Changed, result.ChangedSettings(first, *env)...) {
		if !slices.Contains(env.Changed, c) {
			env.Changed = append(env.Changed, c)
		}
	}
}

// environmentTries is how often a testbed is asked for its environment at the end,
// environmentPause the time between two of them.
const (
	environmentTries = 3
	environmentPause = time.Second
)

// closeEnvironment reads the environment again: settings that changed during
// the campaign are a warning of every comparison in it.
//
// A testbed that does not answer then fails no run whose samples are all there: it
// is asked again, and at last what is unknown is recorded as such.
func (r *run) closeEnvironment(ctx context.Context, env *result.Environment) error {
	after, err := r.Testbed.Environment(ctx)
	for try := 1; try < environmentTries && err != nil && !isLost(err) && ctx.Err() == nil; try++ {
		select {
		case <-time.After(environmentPause):
		case <-ctx.Done():
		}
		after, err = r.Testbed.Environment(ctx)
	}
	switch {
	case ctx.Err() != nil || isLost(err) && !r.KeepGoing:
		if err == nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("describe the testbed at the end: %w", err)
	case err != nil:
		r.missing(fmt.Sprintf("whether settings changed during the campaign: %v", err))
	default:
		after.Version = env.Version
		if r.of.number() > 1 {
			for name, p := range after.Places {
				if _, have := env.Places[name]; !have {
					env.Places[name] = p
				}
			}
		}
		env.Changed = append(env.Changed, result.ChangedSettings(*env, after)...)
		if r.of.number() > 1 { // what was built later did not exist at the beginning
			env.Places, env.Networks, env.Clusters = after.Places, after.Networks, after.Clusters
		}
	}
	env.Finished, env.Absent, env.Profiles = time.Now().UTC(), r.absent, after.Profiles
	return r.Store.WriteJSON(result.EnvironmentFile, env)
}
