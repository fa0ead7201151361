package main

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// epochMoves are how often a second somebody's rights change while everybody works.
var epochMoves = []int{1, 10, 100}

// storm measures what others' changes cost everybody: many connections ask for a hundred namespaces, each of which has a
// kept decision of its own, while the epoch moves.
func (b *restBench) storm(_, large *grantsSide) error {
	shots := large.namespaces(large.bearer)
	next := func(connection, turn int) shot { return shots[(connection*7+turn)%len(shots)] }
	run := func(movesPerSecond int) (measured, error) {
		stop := large.moveEpoch(movesPerSecond)
		got, err := fire(large.address, connectionsOfLoad, b.seconds/2, next)
		if stopped := stop(); err == nil {
			err = stopped
		}
		return got, err
	}
	calm, stormy := make([]float64, 0, grantsRounds), make([][]float64, len(epochMoves))
	if _, err := run(0); err != nil {
		return err
	}
	for range grantsRounds {
		got, err := run(0)
		if err != nil {
			return err
		}
		calm = append(calm, got.perSecond)
		for i, moves := range epochMoves {
			if got, err = run(moves); err != nil {
				return err
			}
			stormy[i] = append(stormy[i], got.perSecond)
		}
	}
	for i, moves := range epochMoves {
		f := compareWaits(fmt.Sprintf("HEAD of 100 namespaces, %d changes of rights a second", moves), "none", stormy[i], calm)
		f.Unit = "requests/s"
		b.add(f)
	}
	return nil
}

// namespaces are requests for namespaces of the crowd.
func (s *grantsSide) namespaces(bearer string) []shot {
	shots := make([]shot, 100)
	for i := range shots {
		path := "/api/catalog/v1/" + lakeName + "/namespaces/crowd_" + strconv.Itoa(i+1)
		shots[i] = shot{request("HEAD", path, map[string]string{"Authorization": "Bearer " + bearer}, nil), 204}
	}
	return shots
}

// moveEpoch moves the epoch so often a second until the function that it gives is called.
func (s *grantsSide) moveEpoch(perSecond int) (stop func() error) {
	if perSecond == 0 {
		return func() error { return nil }
	}
	done, ended := make(chan struct{}), make(chan error)
	go func() {
		ticker := time.NewTicker(time.Second / time.Duration(perSecond))
		defer ticker.Stop()
		var err error
		for err == nil {
			select {
			case <-ticker.C:
				_, err = s.database.Exec(context.Background(), moveEpoch)
			case <-done:
				ended <- nil
				return
			}
		}
		<-done
		ended <- err
	}()
	return func() error {
		close(done)
		return <-ended
	}
}

// heavy measures the memory of a server that somebody with 100,000 grants asks for everything.
func (b *restBench) heavy(_, large *grantsSide) error {
	shots := large.namespaces(large.heavyBearer)
	for i := range 2_000 {
		path := tablePath(lakeName, "crowd_"+strconv.Itoa(i/20+1), fmt.Sprintf("table_%06d", i%20+1))
		shots = append(shots, shot{request("HEAD", path, map[string]string{"Authorization": "Bearer " + large.heavyBearer}, nil), 204})
	}
	before, err := residentKB(large.cmd.Process.Pid)
	if err != nil {
		return err
	}
	stop := large.moveEpoch(5)
	got, err := fire(large.address, connectionsOfLoad, 5*b.seconds, func(connection, turn int) shot {
		return shots[(connection*131+turn)%len(shots)]
	})
	if stopped := stop(); err == nil {
		err = stopped
	}
	if err != nil {
		return err
	}
	after, err := residentKB(large.cmd.Process.Pid)
	b.add(figure{Name: "somebody with 100,000 grants, all tables in turn, 5 changes of rights a second", Value: got.perSecond, Unit: "requests/s"})
	b.add(figure{Name: "serve, resident before", Value: before / 1024, Unit: "MB"})
	b.add(figure{Name: "serve, resident while somebody with 100,000 grants asks", Value: after / 1024, Unit: "MB", BaselineName: "bar", BaselineValue: loadedMBMax, Ratio: after / 1024 / loadedMBMax})
	return err
}
