/*
 * What assay asks of MPI, as a library of its own: the ranks, and one broadcast. The program
 * loads it when it was started under mpirun or srun (cli/session/cluster.c). The ABIs of the MPIs
 * differ, so it is compiled with the MPI that it is for:
 *
 *     mpicc -shared -fPIC -O2 -o assay-mpi-openmpi.so assay_mpi.c      (or assay-mpi-mpich.so)
 *
 * and lies beside the program, or in ../lib/assay. The functions return 0, or MPI's error.
 */
#include <stddef.h>

#include <mpi.h>

int assay_mpi_begin(int *rank, int *size, int *local_rank, int *local_size);
int assay_mpi_share(void *bytes, int n_bytes);

/*
 * The rank among all processes and how many there are; the same among those of this machine. The
 * program has another thread, which calls nothing of MPI.
 */
int assay_mpi_begin(int *rank, int *size, int *local_rank, int *local_size)
{
    MPI_Comm machine;
    int threads, error = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &threads);
    if (!error)
        error = MPI_Comm_rank(MPI_COMM_WORLD, rank);
    if (!error)
        error = MPI_Comm_size(MPI_COMM_WORLD, size);
    if (!error)
        error =
            MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    if (!error)
        error = MPI_Comm_rank(machine, local_rank);
    if (!error)
        error = MPI_Comm_size(machine, local_size);
    return error ? error : MPI_Comm_free(&machine);
}

/*
 * Bytes of rank 0 to all the others. MPI is then left: a process that dies from now on stops no
 * other. It has to be: a rank that ends without MPI_Finalize has failed, for mpirun. That waits for
 * all ranks once more, as MPI_Init does; the program limits the time of both
 * (cli/process/deadline.h).
 */
int assay_mpi_share(void *bytes, int n_bytes)
{
    int error = MPI_Bcast(bytes, n_bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    return error ? error : MPI_Finalize();
}
