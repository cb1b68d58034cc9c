/* alltoall measures MPI_Alltoall as the native all_to_all is measured: all ranks
 * synchronise before each operation, and its time is that of its slowest rank.
 *
 *   alltoall BYTES WARMUP-SECONDS SECONDS
 *
 * Rank 0 prints "cnibench: begun" when all ranks are up, and at the end
 * "cnibench: OPERATIONS operations, MEAN seconds".
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	int rank, ranks, bytes, i, go = 1;
	long operations = 0;
	double warmup, window, sum = 0, opened, begun = 0;
	char *out, *in;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc != 4 || (bytes = atoi(argv[1])) < 1) {
		fprintf(stderr, "usage: alltoall BYTES WARMUP-SECONDS SECONDS\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	warmup = atof(argv[2]);
	window = atof(argv[3]);
	out = malloc((size_t)bytes * ranks);
	in = malloc((size_t)bytes * ranks);
	if (!out || !in)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (i = 0; i < ranks; i++)
		memset(out + (size_t)i * bytes, 1 + (rank * ranks + i) % 251, bytes);

	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		printf("cnibench: begun\n");
		fflush(stdout);
	}
	opened = MPI_Wtime();
	while (go) {
		double at, mine, slowest;
		MPI_Barrier(MPI_COMM_WORLD);
		at = MPI_Wtime();
		MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
		mine = MPI_Wtime() - at;
		MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
		if (rank == 0) {
			double now = MPI_Wtime();
			if (begun > 0) {
				sum += slowest;
				operations++;
				go = now < begun + window;
			} else if (now >= opened + warmup) {
				begun = now;
			}
		}
		MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	for (i = 0; i < ranks; i++) {
		char want = 1 + (i * ranks + rank) % 251;
		if (in[(size_t)i * bytes] != want || in[(size_t)(i + 1) * bytes - 1] != want) {
			fprintf(stderr, "rank %d: what came from rank %d is wrong\n", rank, i);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	if (rank == 0)
		printf("cnibench: %ld operations, %.9g seconds\n", operations, sum / operations);
	MPI_Finalize();
	return 0;
}
