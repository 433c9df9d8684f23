/**
 * The folder that a file is in.
 */
#ifndef BASE_FILE_FOLDER_H
#define BASE_FILE_FOLDER_H

/**
 * Bring the names of the folder that holds `path` to the disk: a file that was just made or
 * renamed keeps its name through a crash only then. Best effort, since not every file system can;
 * errno is left as it was.
 */
void base_folder_sync(const char *path);

#endif
