(* Zarith's whole numbers by another name: the program that Coq writes has a module Z of its own. *)
include Z
