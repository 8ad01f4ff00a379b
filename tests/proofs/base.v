(* base.v - sums, means, and gradients along paths: what the theorems of all families stand on.

   A vector is a function from nat to R, of which an equation reads the first n entries; a matrix
   is a function of two indices. ∑ i < n, e is the sum of e for i = 0, ..., n - 1. Where a number
   of the kind nat meets real ones, it is taken for the real number.

   A gradient is defined by what it is good for: G is the gradient of a loss L at x if along every
   differentiable path through x the loss changes at the rate ∑ G i * d i, with d the velocity of
   the path. L is any such function, not only a linear one. The chain rule for a layer y = f(x)
   then reads: f takes paths to paths. *)

From Coq Require Export Reals Lra Lia Arith FunctionalExtensionality.
From Coquelicot Require Export Coquelicot.
Global Open Scope R_scope.
Coercion INR : nat >-> R.

Ltac termwise := intros; cbv beta; ring.

(* ---- Sums -------------------------------------------------------------------------------- *)

Fixpoint Sum (n : nat) (f : nat -> R) : R :=
  match n with O => 0 | S k => Sum k f + f k end.
Notation "'∑' i '<' n , e" := (Sum n (fun i => e))
  (at level 36, i name, n at level 9, e at level 40).
Notation "f · g" := (fun i : nat => f i * g i) (at level 38, left associativity).

(* 1 if i = j, else 0 *)
Definition δ (i j : nat) : R := if Nat.eqb i j then 1 else 0.

Lemma Sum_ext_lt n f g : (forall i, (i < n)%nat -> f i = g i) -> Sum n f = Sum n g.
Proof. induction n; simpl; intros H; auto. rewrite IHn, H; auto. Qed.
Lemma Sum_ext n f g : (forall i, f i = g i) -> Sum n f = Sum n g.
Proof. intros; apply Sum_ext_lt; auto. Qed.
Lemma Sum_plus n f g : ∑ i < n, (f i + g i) = Sum n f + Sum n g.
Proof. induction n; simpl; [ring | rewrite IHn; ring]. Qed.
Lemma Sum_minus n f g : ∑ i < n, (f i - g i) = Sum n f - Sum n g.
Proof. induction n; simpl; [ring | rewrite IHn; ring]. Qed.
Lemma Sum_scal n a f : ∑ i < n, a * f i = a * Sum n f.
Proof. induction n; simpl; [ring | rewrite IHn; ring]. Qed.
Lemma Sum_const n a : ∑ i < n, a = n * a.
Proof. induction n; [simpl; ring | rewrite S_INR; simpl Sum; rewrite IHn; ring]. Qed.
Lemma Sum_0 n : ∑ i < n, 0 = 0.
Proof. rewrite Sum_const; ring. Qed.

(* A sum is linear: if every term is a combination, so is the sum. *)
Lemma Sum_lin1 n a f h : (forall i, h i = a * f i) -> Sum n h = a * Sum n f.
Proof. intros H; rewrite (Sum_ext _ _ _ H), Sum_scal; reflexivity. Qed.
Lemma Sum_lin2 n a b f g h : (forall i, h i = a * f i + b * g i) ->
  Sum n h = a * Sum n f + b * Sum n g.
Proof. intros H; rewrite (Sum_ext _ _ _ H), Sum_plus, !Sum_scal; reflexivity. Qed.
Lemma Sum_lin3 n a b c f g h k : (forall i, k i = a * f i + b * g i + c * h i) ->
  Sum n k = a * Sum n f + b * Sum n g + c * Sum n h.
Proof. intros H; rewrite (Sum_ext _ _ _ H), !Sum_plus, !Sum_scal; reflexivity. Qed.

Lemma Sum_swap n m f : ∑ i < n, ∑ j < m, f i j = ∑ j < m, ∑ i < n, f i j.
Proof.
  induction n; simpl; [rewrite Sum_0; ring |].
  rewrite IHn, <- Sum_plus. reflexivity.
Qed.
Lemma Sum_delta n i f : (i < n)%nat -> ∑ j < n, δ i j * f j = f i.
Proof.
  intros H. assert (Z : forall k, (k <= i)%nat -> ∑ j < k, δ i j * f j = 0).
  { induction k; intros K; simpl; [reflexivity |]. rewrite IHk by lia. unfold δ.
    replace (Nat.eqb i k) with false by (symmetry; apply Nat.eqb_neq; lia). ring. }
  induction n; [lia |]. simpl. destruct (Nat.eq_dec i n) as [E | E].
  - subst. rewrite Z by lia. unfold δ. rewrite Nat.eqb_refl. ring.
  - rewrite IHn by lia. unfold δ.
    replace (Nat.eqb i n) with false by (symmetry; apply Nat.eqb_neq; lia). ring.
Qed.
Lemma δ_sym i j : δ i j = δ j i.
Proof. unfold δ. rewrite Nat.eqb_sym. reflexivity. Qed.
Lemma Sum_delta_one n i : (i < n)%nat -> ∑ j < n, δ i j = 1.
Proof.
  intros H. rewrite <- (Sum_delta n i (fun _ => 1)) by exact H. apply Sum_ext; intros; ring.
Qed.
Lemma Sum_le n f g : (forall i, (i < n)%nat -> f i <= g i) -> Sum n f <= Sum n g.
Proof.
  induction n; simpl; intros H; [lra |].
  apply Rplus_le_compat; [apply IHn | apply H]; auto.
Qed.
Lemma Sum_nonneg n f : (forall i, (i < n)%nat -> 0 <= f i) -> 0 <= Sum n f.
Proof. intros H; rewrite <- (Sum_0 n); apply Sum_le; exact H. Qed.
Lemma Sum_abs n f : Rabs (Sum n f) <= ∑ i < n, Rabs (f i).
Proof.
  induction n; simpl; [rewrite Rabs_R0; lra |].
  eapply Rle_trans; [apply Rabs_triang | lra].
Qed.
Lemma Sum_split n m f : Sum (n + m) f = Sum n f + ∑ i < m, f (n + i)%nat.
Proof.
  induction m; simpl; [rewrite Nat.add_0_r; ring |].
  rewrite Nat.add_succ_r; simpl. rewrite IHm; ring.
Qed.
Lemma Sum_first n f : Sum (S n) f = f 0%nat + ∑ i < n, f (S i).
Proof. induction n; simpl; [ring |]. simpl in IHn. rewrite IHn; ring. Qed.
Lemma Sum_telescope n f : ∑ i < n, (f (S i) - f i) = f n - f 0%nat.
Proof. induction n; simpl; [ring | rewrite IHn; ring]. Qed.

(* ---- Means ------------------------------------------------------------------------------- *)

Definition mean (n : nat) (x : nat -> R) : R := Sum n x / n.
Definition var (n : nat) (x : nat -> R) : R := (∑ i < n, (x i - mean n x) ^ 2) / n.
Definition rstd (n : nat) (ε : R) (x : nat -> R) : R := 1 / sqrt (var n x + ε).
Definition normalized (n : nat) (ε : R) (x : nat -> R) (i : nat) : R :=
  (x i - mean n x) * rstd n ε x.
Definition affine (γ β x : nat -> R) (i : nat) : R := γ i * x i + β i.

Lemma mean_is n x : mean n x = Sum n x / n.
Proof. reflexivity. Qed.
Lemma count_pos n : (0 < n)%nat -> 0 < n.
Proof. apply lt_0_INR. Qed.
Lemma count_ne0 n : (0 < n)%nat -> INR n <> 0.
Proof. intros H; apply Rgt_not_eq, count_pos, H. Qed.
Lemma Sum_mean n x : (0 < n)%nat -> Sum n x = n * mean n x.
Proof. intros H; unfold mean; field; apply count_ne0, H. Qed.
Lemma Sum_dev n x : (0 < n)%nat -> ∑ i < n, (x i - mean n x) = 0.
Proof. intros H. rewrite Sum_minus, Sum_const, Sum_mean by exact H. ring. Qed.
Lemma mean_ext n x y : (forall i, x i = y i) -> mean n x = mean n y.
Proof. intros H; unfold mean; rewrite (Sum_ext _ _ _ H); reflexivity. Qed.
Lemma mean_lin2 n a b f g h : (forall i, h i = a * f i + b * g i) ->
  mean n h = a * mean n f + b * mean n g.
Proof. intros H; unfold mean; rewrite (Sum_lin2 _ _ _ _ _ _ H). unfold Rdiv; ring. Qed.
Lemma mean_const n a : (0 < n)%nat -> mean n (fun _ => a) = a.
Proof. intros H; unfold mean; rewrite Sum_const; field; apply count_ne0, H. Qed.
Lemma mean_nonneg n x : (forall i, (i < n)%nat -> 0 <= x i) -> 0 <= mean n x.
Proof.
  intros H. apply Rmult_le_pos; [apply Sum_nonneg, H |].
  destruct n; [simpl; rewrite Rinv_0; lra | apply Rlt_le, Rinv_0_lt_compat, count_pos; lia].
Qed.
Lemma var_nonneg n x : 0 <= var n x.
Proof. apply (mean_nonneg n (fun i => (x i - mean n x) ^ 2)). intros; apply pow2_ge_0. Qed.

(* r is positive, and 1 / r² = v + ε *)
Lemma rstd_pos n ε x : 0 < var n x + ε -> 0 < rstd n ε x.
Proof.
  intros H. unfold rstd, Rdiv. rewrite Rmult_1_l. apply Rinv_0_lt_compat, sqrt_lt_R0, H.
Qed.
Lemma rstd_sqr n ε x : 0 < var n x + ε -> rstd n ε x ^ 2 * (var n x + ε) = 1.
Proof.
  intros H. unfold rstd. pose proof (sqrt_lt_R0 _ H).
  rewrite <- (sqrt_sqrt (var n x + ε)) at 2 by lra. field; lra.
Qed.
Lemma Sum_normalized n ε x : (0 < n)%nat -> ∑ i < n, normalized n ε x i = 0.
Proof.
  intros H. unfold normalized.
  rewrite (Sum_ext _ _ (fun i => rstd n ε x * (x i - mean n x))) by termwise.
  rewrite Sum_scal, Sum_dev by exact H. ring.
Qed.
Lemma mean_normalized n ε x : (0 < n)%nat -> mean n (normalized n ε x) = 0.
Proof. intros H; unfold mean; rewrite Sum_normalized by exact H. unfold Rdiv; ring. Qed.
Lemma normalized_sqr n ε x :
  mean n (fun i => normalized n ε x i ^ 2) = var n x * rstd n ε x ^ 2.
Proof.
  unfold mean, var, normalized.
  rewrite (Sum_ext _ _ (fun i => rstd n ε x ^ 2 * (x i - mean n x) ^ 2)) by termwise.
  rewrite Sum_scal. unfold Rdiv; ring.
Qed.

(* ---- Derivatives: the rules, over the reals ---------------------------------------------- *)

Lemma d_eq (f : R -> R) (t l l' : R) : is_derive f t l -> l = l' -> is_derive f t l'.
Proof. intros H E; rewrite <- E; exact H. Qed.
Lemma d_const (a t : R) : is_derive (fun _ => a) t 0.
Proof. exact (is_derive_const (V := R_NormedModule) a t). Qed.
Lemma d_id (t : R) : is_derive (fun s => s) t 1.
Proof. exact (is_derive_id (K := R_AbsRing) t). Qed.
Lemma d_plus f g (t a b : R) : is_derive f t a -> is_derive g t b ->
  is_derive (fun s => f s + g s) t (a + b).
Proof. intros; apply (is_derive_plus (V := R_NormedModule)); assumption. Qed.
Lemma d_minus f g (t a b : R) : is_derive f t a -> is_derive g t b ->
  is_derive (fun s => f s - g s) t (a - b).
Proof. intros; apply (is_derive_minus (V := R_NormedModule)); assumption. Qed.
Lemma d_opp f (t a : R) : is_derive f t a -> is_derive (fun s => - f s) t (- a).
Proof. intros; apply (is_derive_opp (V := R_NormedModule)); assumption. Qed.
Lemma d_mult f g (t a b : R) : is_derive f t a -> is_derive g t b ->
  is_derive (fun s => f s * g s) t (a * g t + f t * b).
Proof.
  intros F G. exact (is_derive_mult (K := R_AbsRing) f g t a b F G Rmult_comm).
Qed.
Lemma d_scal f (c t a : R) : is_derive f t a -> is_derive (fun s => c * f s) t (c * a).
Proof. intros; apply is_derive_scal; assumption. Qed.
Lemma d_div f g (t a b : R) : is_derive f t a -> is_derive g t b -> g t <> 0 ->
  is_derive (fun s => f s / g s) t ((a * g t - f t * b) / g t ^ 2).
Proof. intros; apply is_derive_div; assumption. Qed.
Lemma d_divc f (c t a : R) : is_derive f t a -> is_derive (fun s => f s / c) t (a / c).
Proof.
  intros H. apply (is_derive_ext (fun s => / c * f s)).
  - intros; change (@eq R (/ c * f t0) (f t0 / c)); unfold Rdiv; ring.
  - eapply d_eq; [apply d_scal, H | unfold Rdiv; ring].
Qed.
Lemma d_comp f g (t a b : R) : is_derive f (g t) b -> is_derive g t a ->
  is_derive (fun s => f (g s)) t (b * a).
Proof.
  intros F G. eapply d_eq; [apply (is_derive_comp f g); eassumption |].
  unfold scal; simpl; unfold mult; simpl; ring.
Qed.
Lemma d_sqr f (t a : R) : is_derive f t a -> is_derive (fun s => f s ^ 2) t (2 * f t * a).
Proof.
  intros H. apply (is_derive_ext (fun s => f s * f s)).
  - intros; change (@eq R (f t0 * f t0) (f t0 ^ 2)); ring.
  - eapply d_eq; [apply d_mult; eassumption | ring].
Qed.
Lemma d_sqrt f (t a : R) : is_derive f t a -> 0 < f t ->
  is_derive (fun s => sqrt (f s)) t (a / (2 * sqrt (f t))).
Proof. intros; apply is_derive_sqrt; assumption. Qed.
Lemma d_exp f (t a : R) : is_derive f t a -> is_derive (fun s => exp (f s)) t (exp (f t) * a).
Proof. intros; apply (d_comp exp); [apply is_derive_exp | assumption]. Qed.
Lemma d_ln f (t a : R) : is_derive f t a -> 0 < f t -> is_derive (fun s => ln (f s)) t (a / f t).
Proof.
  intros H P. eapply d_eq; [apply (d_comp ln); [apply is_derive_ln, P | exact H] |].
  unfold Rdiv; ring.
Qed.
Lemma d_Sum n (f : R -> nat -> R) (t : R) d : (forall i, is_derive (fun s => f s i) t (d i)) ->
  is_derive (fun s => ∑ i < n, f s i) t (∑ i < n, d i).
Proof. intros H; induction n; simpl; [apply d_const | apply d_plus; auto]. Qed.

(* Differentiates what is made by these rules of what is in the context. *)
Ltac rate := cbv beta;
  first [ eassumption | solve [eauto with rates] |
  match goal with
  | |- is_derive (fun _ => ?c) _ _ => apply (d_const c)
  | |- is_derive (fun s => s) _ _ => apply d_id
  | |- is_derive (fun s => @?f s + @?g s) _ _ => apply (d_plus f g); rate
  | |- is_derive (fun s => @?f s - @?g s) _ _ => apply (d_minus f g); rate
  | |- is_derive (fun s => - @?f s) _ _ => apply (d_opp f); rate
  | |- is_derive (fun s => ?c * @?f s) _ _ => apply (d_scal f c); rate
  | |- is_derive (fun s => @?f s * @?g s) _ _ => apply (d_mult f g); rate
  | |- is_derive (fun s => @?f s / ?c) _ _ => apply (d_divc f c); rate
  | |- is_derive (fun s => @?f s ^ 2) _ _ => apply (d_sqr f); rate
  | |- is_derive (fun s => Sum ?n (@?f s)) _ _ => apply (d_Sum n f); intro; rate
  end ].
Create HintDb rates.

(* ---- Paths and gradients ----------------------------------------------------------------- *)

(* The path p is at x at time t, with velocity d. *)
Definition path (p : R -> nat -> R) (t : R) (x d : nat -> R) :=
  p t = x /\ forall i, is_derive (fun s => p s i) t (d i).

(* G is the gradient, by its first n entries, of the loss L at x. *)
Definition gradient (n : nat) (L : (nat -> R) -> R) (x G : nat -> R) :=
  forall p t d, path p t x d -> is_derive (fun s => L (p s)) t (∑ i < n, d i * G i).

(* The same for matrices, and for stacks of matrices. *)
Definition path2 (p : R -> nat -> nat -> R) (t : R) (x d : nat -> nat -> R) :=
  p t = x /\ forall i j, is_derive (fun s => p s i j) t (d i j).
Definition gradient2 (n m : nat) (L : (nat -> nat -> R) -> R) (x G : nat -> nat -> R) :=
  forall p t d, path2 p t x d ->
  is_derive (fun s => L (p s)) t (∑ i < n, ∑ j < m, d i j * G i j).
Definition path3 (p : R -> nat -> nat -> nat -> R) (t : R) (x d : nat -> nat -> nat -> R) :=
  p t = x /\ forall i j k, is_derive (fun s => p s i j k) t (d i j k).
Definition gradient3 (n m l : nat) (L : (nat -> nat -> nat -> R) -> R)
    (x G : nat -> nat -> nat -> R) :=
  forall p t d, path3 p t x d ->
  is_derive (fun s => L (p s)) t (∑ i < n, ∑ j < m, ∑ k < l, d i j k * G i j k).

(* f i is the i-th partial derivative: only entry i of x moves. *)
Definition nudge (x : nat -> R) (i : nat) (s : R) (j : nat) : R := x j + s * δ i j.
Definition partial (f : (nat -> R) -> R) (x : nat -> R) (i : nat) (l : R) :=
  is_derive (fun s => f (nudge x i s)) 0 l.

Lemma path_nudge x i : path (nudge x i) 0 x (δ i).
Proof.
  split.
  - apply functional_extensionality; intros j; unfold nudge; ring.
  - intros j; unfold nudge. eapply d_eq; [rate | ring].
Qed.
Lemma path_const x t : path (fun _ => x) t x (fun _ => 0).
Proof. split; [reflexivity | intros; apply d_const]. Qed.
Lemma path_line x d : path (fun s i => x i + s * d i) 0 x d.
Proof.
  split.
  - apply functional_extensionality; intros j; ring.
  - intros j. eapply d_eq; [rate | ring].
Qed.

(* Such gradients exist: a linear loss has one, and so has a sum of squares. *)
Lemma gradient_linear n w y : gradient n (fun y => ∑ i < n, w i * y i) y w.
Proof.
  intros p t d [_ D]. eapply d_eq; [rate; apply D | apply Sum_ext; termwise].
Qed.
Lemma gradient_squares n y : gradient n (fun y => ∑ i < n, y i ^ 2) y (fun i => 2 * y i).
Proof.
  intros p t d [E D]. eapply d_eq; [apply d_Sum; intros i; apply d_sqr, D |].
  cbv beta. rewrite E. apply Sum_ext; termwise.
Qed.

(* What a gradient says of one entry. *)
Lemma gradient_partial n L x G i : (i < n)%nat -> gradient n L x G -> partial L x i (G i).
Proof.
  intros H F. eapply d_eq; [apply F, path_nudge | apply Sum_delta, H].
Qed.

(* A gradient by a layer's input: the layer y = f(x) takes a path with velocity d to one with
   velocity J d, and the two sums are equal. *)
Lemma chain n m L f x J dy dx :
  (forall p t d, path p t x d -> path (fun s => f (p s)) t (f x) (J d)) ->
  (forall d, ∑ i < m, J d i * dy i = ∑ i < n, d i * dx i) ->
  gradient m L (f x) dy -> gradient n (fun x => L (f x)) x dx.
Proof.
  intros F E G p t d P. eapply d_eq; [apply (G _ _ _ (F p t d P)) | apply E].
Qed.

(* ---- Means, variances and normalized values along a path --------------------------------- *)

Section Along.
Variables (n : nat) (x d : nat -> R) (p : R -> nat -> R) (t : R).
Hypothesis n_pos : (0 < n)%nat.
Hypothesis P : path p t x d.

Lemma along_mean : is_derive (fun s => mean n (p s)) t (mean n d).
Proof. destruct P as [_ D]. unfold mean. apply d_divc, d_Sum, D. Qed.

Lemma Sum_dev_const c : ∑ i < n, (x i - mean n x) * c = 0.
Proof.
  rewrite (Sum_ext _ _ (fun i => c * (x i - mean n x))) by termwise.
  rewrite Sum_scal, Sum_dev by exact n_pos. ring.
Qed.

(* The term through the mean vanishes, since the deviations sum to 0. *)
Lemma along_var :
  is_derive (fun s => var n (p s)) t (2 / n * ∑ i < n, (x i - mean n x) * d i).
Proof.
  pose proof along_mean as Dm. destruct P as [E D]. unfold var.
  eapply d_eq; [rate |]. cbv beta. rewrite E.
  rewrite (Sum_lin2 n 2 (-2) (fun i => (x i - mean n x) * d i)
             (fun i => (x i - mean n x) * mean n d)) by termwise.
  rewrite Sum_dev_const. field. apply count_ne0, n_pos.
Qed.

Variable ε : R.
Hypothesis root : 0 < var n x + ε.
Notation r := (rstd n ε x).
Notation xh := (normalized n ε x).

Lemma along_rstd_var l : is_derive (fun s => var n (p s)) t l ->
  is_derive (fun s => rstd n ε (p s)) t (- (1 / 2) * r ^ 3 * l).
Proof.
  intros D. destruct P as [E _]. unfold rstd.
  pose proof (sqrt_lt_R0 _ root) as S.
  eapply d_eq.
  - apply d_div; [apply d_const | |]; [apply d_sqrt | rewrite E; lra].
    + apply d_plus; [exact D | apply d_const].
    + rewrite E; exact root.
  - cbv beta. rewrite E. field. lra.
Qed.

Lemma along_rstd : is_derive (fun s => rstd n ε (p s)) t (- r ^ 2 * mean n (xh · d)).
Proof.
  eapply d_eq; [apply along_rstd_var, along_var |].
  rewrite (mean_is n (xh · d)), (Sum_lin1 n r (fun i => (x i - mean n x) * d i) (xh · d))
    by (unfold normalized; termwise).
  field. apply count_ne0, n_pos.
Qed.

(* Directly, through the mean, and through r. *)
Lemma along_normalized :
  path (fun s => normalized n ε (p s)) t xh
       (fun i => r * (d i - mean n d - xh i * mean n (xh · d))).
Proof.
  pose proof along_mean as Dm. pose proof along_rstd as Dr. destruct P as [E D].
  split; [rewrite E; reflexivity |]. intros i. unfold normalized at 1.
  eapply d_eq; [rate |]. cbv beta. rewrite E. unfold normalized. ring.
Qed.
End Along.

(* ---- The two adjoints that all norms need ------------------------------------------------ *)

(* Removing the mean and k times the component along h is the same operation for d and for g. *)
Lemma centred_adjoint n r k h g d :
  ∑ i < n, r * (d i - mean n d - k * h i * mean n (h · d)) * g i =
  ∑ i < n, d i * (r * (g i - mean n g - k * h i * mean n (g · h))).
Proof.
  transitivity (r * Sum n (d · g) + (- r * mean n d) * Sum n g
                + (- r * k * mean n (h · d)) * Sum n (g · h)).
  - apply Sum_lin3; termwise.
  - symmetry. transitivity (r * Sum n (d · g) + (- r * mean n g) * Sum n d
                + (- r * k * mean n (g · h)) * Sum n (h · d)).
    + apply Sum_lin3; termwise.
    + unfold mean, Rdiv. ring.
Qed.
Lemma uncentred_adjoint n r h g d :
  ∑ i < n, r * (d i - h i * mean n (h · d)) * g i =
  ∑ i < n, d i * (r * (g i - h i * mean n (g · h))).
Proof.
  transitivity (r * Sum n (d · g) + (- r * mean n (h · d)) * Sum n (g · h)).
  - apply Sum_lin2; termwise.
  - symmetry. transitivity (r * Sum n (d · g) + (- r * mean n (g · h)) * Sum n (h · d)).
    + apply Sum_lin2; termwise.
    + unfold mean, Rdiv. ring.
Qed.

(* The gradient by x, from that by x̂. *)
Lemma gradient_normalized n ε L x g : (0 < n)%nat -> 0 < var n x + ε ->
  gradient n L (normalized n ε x) g ->
  gradient n (fun x => L (normalized n ε x)) x
    (fun i => rstd n ε x * (g i - mean n g
              - normalized n ε x i * mean n (g · normalized n ε x))).
Proof.
  intros N R. apply (chain n n L (normalized n ε) x
    (fun d i => rstd n ε x * (d i - mean n d
                - normalized n ε x i * mean n (normalized n ε x · d)))).
  - intros p t d P. apply along_normalized; assumption.
  - intros d. pose proof (centred_adjoint n (rstd n ε x) 1 (normalized n ε x) g d) as A.
    etransitivity; [| etransitivity; [exact A |]]; apply Sum_ext; termwise.
Qed.

(* The gradients of y = γ x + β, all of them. *)
Lemma gradient_affine n L γ β x dy : gradient n L (affine γ β x) dy ->
  gradient n (fun x => L (affine γ β x)) x (γ · dy).
Proof.
  apply (chain n n L (affine γ β) x (fun d i => γ i * d i)).
  - intros p t d [E D]. split; [rewrite E; reflexivity |]. intros i. unfold affine.
    eapply d_eq; [rate | ring].
  - intros d. apply Sum_ext; termwise.
Qed.
