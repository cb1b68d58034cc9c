package format

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/report/section"
)

// writeParquet writes the rows of the CSV as a Parquet file: text as strings,
// figures as doubles, marks as booleans, and null for what is absent. What the
// campaign lacks for a full answer is in the file's metadata.
func writeParquet(w io.Writer, d *report.Document, _ screen.Options) error {
	group := parquet.Group{}
	columns := longColumns()
	kinds := kindsOf(columns)
	for i, c := range columns {
		group[c] = parquet.Optional(parquetNode(kinds[i]))
	}
	schema := parquet.NewSchema("cnibench", group)
	out := parquet.NewWriter(w, schema, parquet.Compression(&parquet.Snappy), parquet.CreatedBy("cnibench", d.Version, ""),
		parquet.KeyValueMetadata("campaign", page.Clean(d.Title())), parquet.KeyValueMetadata("missing", strings.Join(section.Missing(d), "\n")))
	for fields := range longRows(d) {
		row := make(parquet.Row, len(columns))
		for i, c := range columns {
			leaf, ok := schema.Lookup(c)
			if !ok {
				return fmt.Errorf("column %s is not in the schema", c)
			}
			v, err := parquetValue(kinds[i], fields[i])
			if err != nil {
				return fmt.Errorf("column %s: %w", c, err)
			}
			defined := 1
			if fields[i] == "" {
				defined = 0
			}
			row[leaf.ColumnIndex] = v.Level(0, defined, leaf.ColumnIndex)
		}
		if _, err := out.WriteRows([]parquet.Row{row}); err != nil {
			return err
		}
	}
	return out.Close()
}

func parquetNode(k columnKind) parquet.Node {
	switch k {
	case textColumn:
		return parquet.String()
	case boolColumn:
		return parquet.Leaf(parquet.BooleanType)
	}
	return parquet.Leaf(parquet.DoubleType)
}

// parquetValue is a field of the long form; one that is empty is null.
func parquetValue(k columnKind, field string) (parquet.Value, error) {
	switch {
	case field == "":
		return parquet.NullValue(), nil
	case k == textColumn:
		return parquet.ValueOf(field), nil
	case k == boolColumn:
		return parquet.ValueOf(field == "true"), nil
	}
	v, err := strconv.ParseFloat(field, 64)
	return parquet.ValueOf(v), err
}
