/* The seven calls of MPI that a training needs, with types that Rust knows.
 *
 * What MPI_Comm, MPI_Op and their constants are differs between libraries, so the compiler of the library at hand
 * reads its header here, and no binding has to be generated. A failed call ends the whole job: MPI's default. */
#include <mpi.h>
#include <stdint.h>

enum { TAG = 0 };

/* 0 if MPI is up with calls from any thread, one at a time; 1 if it was started before; 2 if it offers less. */
int geodp_mpi_start(int *rank, int *size) {
    int before, threading;
    MPI_Initialized(&before);
    if (before) return 1;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &threading);
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, size);
    return threading < MPI_THREAD_SERIALIZED ? 2 : 0;
}

void geodp_mpi_stop(void) { MPI_Finalize(); }

void geodp_mpi_send(int to, const uint8_t *bytes, int count) {
    MPI_Send(bytes, count, MPI_BYTE, to, TAG, MPI_COMM_WORLD);
}

/* Length of the message that waits, or -1. */
int geodp_mpi_waiting(int from) {
    int found, count;
    MPI_Status status;
    MPI_Iprobe(from, TAG, MPI_COMM_WORLD, &found, &status);
    if (!found) return -1;
    MPI_Get_count(&status, MPI_BYTE, &count);
    return count;
}

void geodp_mpi_receive(int from, uint8_t *bytes, int count) {
    MPI_Recv(bytes, count, MPI_BYTE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void geodp_mpi_broadcast(float *values, int count) {
    MPI_Bcast(values, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

/* The sums are left with the first process; the values of the others stay. */
void geodp_mpi_sum_to_first(int64_t *values, int count) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Reduce(rank == 0 ? MPI_IN_PLACE : values, values, count, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
}
